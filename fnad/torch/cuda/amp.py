"""`torch.cuda.amp`: see `torch.amp`."""

from fnad.torch.amp import GradScaler as GradScaler
from fnad.torch.amp import autocast as autocast
