"""One step of a quantization, run by an interpreter with llm-compressor: ``python -P -m duet_quantizing JOB.json``.

It knows nothing of Duet: a job file comes in, JSON lines go out on standard output, a result is written at the end.
"""
