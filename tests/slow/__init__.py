"""What takes half an hour: a real chat model, quantized in every way."""
