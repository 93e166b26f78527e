"""`torch.utils.data`: data sets, and batches of them."""

from typing import NoReturn

from fnad.errors import UnknownNameError
from fnad.torch.utils.data.dataset import ChainDataset as ChainDataset
from fnad.torch.utils.data.dataset import ConcatDataset as ConcatDataset
from fnad.torch.utils.data.dataset import Dataset as Dataset
from fnad.torch.utils.data.dataset import IterableDataset as IterableDataset
from fnad.torch.utils.data.dataset import StackDataset as StackDataset
from fnad.torch.utils.data.dataset import Subset as Subset
from fnad.torch.utils.data.dataset import TensorDataset as TensorDataset
from fnad.torch.utils.data.dataset import random_split as random_split
from fnad.torch.utils.data.loader import DataLoader as DataLoader
from fnad.torch.utils.data.loader import default_collate as default_collate
from fnad.torch.utils.data.loader import default_convert as default_convert
from fnad.torch.utils.data.sampler import BatchSampler as BatchSampler
from fnad.torch.utils.data.sampler import RandomSampler as RandomSampler
from fnad.torch.utils.data.sampler import Sampler as Sampler
from fnad.torch.utils.data.sampler import SequentialSampler as SequentialSampler
from fnad.torch.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from fnad.torch.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler
from fnad.torch.utils.data.workers import get_worker_info as get_worker_info


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownNameError(f"torch.utils.data.{name} does not exist in fnad.torch", fix="docs/torch.md lists what there is")
