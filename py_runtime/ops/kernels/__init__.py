"""What several ops share: how kernels are chosen, sized and given their parameters."""
