"""The same spec for what starts gpunode by itself. Pure: values in, files out, each with gpunode and its spec."""
