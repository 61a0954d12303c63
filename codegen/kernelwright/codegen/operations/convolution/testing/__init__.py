"""What tests of convolution share."""
