"""What takes an hour: a real chat model, quantized, tuned and operated in every way."""
