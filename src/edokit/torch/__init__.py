"""EDO inside a torch model, and members fine-tuned together with the weights that pool them."""

from edokit.torch.end_to_end import TrainedEndToEnd, train_end_to_end
from edokit.torch.head import EDOHead

__all__ = ["EDOHead", "TrainedEndToEnd", "train_end_to_end"]
