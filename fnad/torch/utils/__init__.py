"""`torch.utils`."""

from fnad.torch.utils import data as data
