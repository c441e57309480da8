"""What must not be read by others, masked: passwords, tokens, keys, and the user part of addresses.

`masked` takes a text and its form; `form_of` finds the form by a file's path; `mask_argv` takes a command line's words.
Everything that gpunode prints, saves or records passes here (docs/reference/cli.md, Secrets).
"""

from gpunode.masking.argv import mask_argv as mask_argv
from gpunode.masking.forms import form_of as form_of
from gpunode.masking.forms import masked as masked
from gpunode.masking.names import MASK as MASK
from gpunode.masking.names import is_secret as is_secret
