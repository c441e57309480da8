"""Completion files for bash, zsh and fish: the words of the tree written down, so that no key press starts a Python.

Each of the three first finds the verb that is being typed ("k8s labels"), then what fits there: the value of the option
before the cursor, else verbs, arguments and options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from gpunode_release.command_line import Option, Verb, choices_of, command_line

BASH, ZSH, FISH = "gpunode", "_gpunode", "gpunode.fish"  # as each shell looks for them in its directory
_FILES, _DIRECTORIES, _NOTHING = "files", "directories", "nothing"  # besides a list of words


def completions() -> dict[str, str]:
    """Path below completions/ to text."""
    root = command_line()
    made: tuple[tuple[str, Callable[[Verb], Iterator[str]]], ...] = (
        (f"bash/{BASH}", _bash),
        (f"zsh/{ZSH}", _zsh),
        (f"fish/{FISH}", _fish),
    )
    return {path: "\n".join(lines(root)) + "\n" for path, lines in made}


def _bash(root: Verb) -> Iterator[str]:
    yield "# bash completion for gpunode                                  -*- shell-script -*-"
    yield "_gpunode() {"
    yield "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb='' word words='' rest=''"
    yield "    # bash takes --format=json for three words"
    yield "    if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi"
    yield '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield from _verb_so_far(root, 8)
    yield "    done"
    yield "    COMPREPLY=()"
    yield '    case "$verb $prev" in'
    for value, places in _values(root).items():
        yield f"    {_patterns(places)}"
        yield f"        {_BASH_VALUE.get(value) or _bash_words(value)}"
        yield "        return ;;"
    yield "    esac"
    yield "    case $verb in"
    for verb in root.all():
        yield f"    {_quoted(_key(verb))}) rest='{' '.join(_rest(verb))}' words='{' '.join(_flags(verb))}' ;;"
    yield "    esac"
    yield "    [[ $cur == -* || -z $rest ]] || words=$rest"
    yield '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")'
    yield "}"
    yield "complete -F _gpunode gpunode"


_BASH_VALUE = {
    _FILES: 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur")',
    _DIRECTORIES: 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur")',
    _NOTHING: ":",
}


def _bash_words(value: str) -> str:
    return f"mapfile -t COMPREPLY < <(compgen -W '{value}' -- \"$cur\")"


def _zsh(root: Verb) -> Iterator[str]:
    yield "#compdef gpunode"
    yield "_gpunode() {"
    yield "    local verb='' word prev=${words[CURRENT-1]}"
    yield "    local -a verbs flags"
    yield "    [[ ${words[CURRENT]} != --*=* ]] || { prev=${words[CURRENT]%%=*}; compset -P '*='; }"
    yield "    for word in ${words[2,CURRENT-1]}; do"
    yield from _verb_so_far(root, 8)
    yield "    done"
    yield '    case "$verb $prev" in'
    for value, places in _values(root).items():
        yield f"    {_patterns(places)} {_ZSH_VALUE.get(value) or f'compadd -- {value}'}; return ;;"
    yield "    esac"
    yield "    case $verb in"
    for verb in root.all():
        verbs = [f"{_zsh_word(below.path[-1])}:{below.help}" for below in verb.verbs]
        words = [_zsh_word(word) for word in _rest(verb)[len(verb.verbs) :]]
        flags = [f"{_zsh_word(flag)}:{option.help}" for option in verb.options for flag in option.flags]
        yield f"    {_quoted(_key(verb))})"
        yield f"        verbs=({' '.join(map(_quoted, [*verbs, *words]))})"
        yield f"        flags=({' '.join(map(_quoted, flags))}) ;;"
    yield "    esac"
    yield "    (( ! $#verbs )) || _describe command verbs"
    yield "    if [[ ${words[CURRENT]} == -* ]] || (( ! $#verbs )); then _describe -o option flags; fi"
    yield "}"
    # As a file of fpath its body is called to complete; sourced, it registers itself.
    yield 'if [[ ${funcstack[1]} == _gpunode ]]; then _gpunode "$@"; else compdef _gpunode gpunode; fi'


_ZSH_VALUE = {_FILES: "_files", _DIRECTORIES: "_files -/", _NOTHING: "_message value"}


def _zsh_word(word: str) -> str:
    return word.replace(":", "\\:")


def _fish(root: Verb) -> Iterator[str]:
    yield "function __gpunode_at --argument-names wanted"
    yield "    set --local verb ''"
    yield "    for word in (commandline --current-process --tokenize --cut-at-cursor)[2..]"
    yield '        switch "$verb $word"'
    yield f"            case {' '.join(_quoted(_key(verb)) for verb in root.all() if verb.path)}"
    yield '                set verb "$verb $word"'
    yield "        end"
    yield "    end"
    yield '    test "$verb" = "$wanted"'
    yield "end"
    yield "complete --command gpunode --no-files"
    for verb in root.all():
        at = f"complete --command gpunode --condition {_fish_quoted(f'__gpunode_at {_quoted(_key(verb))}')}"
        for below in verb.verbs:
            yield f"{at} --arguments {below.path[-1]} --description {_fish_quoted(below.help)}"
        if words := _rest(verb)[len(verb.verbs) :]:
            yield f"{at} --arguments {_fish_quoted(' '.join(words))}"
        for option in verb.options:
            yield f"{at} {_fish_option(option)} --description {_fish_quoted(option.help)}"


def _fish_option(option: Option) -> str:
    flags = [f"--long-option {f[2:]}" if f.startswith("--") else f"--short-option {f[1:]}" for f in option.flags]
    value = _value(option)
    if value is None:
        return " ".join(flags)
    if value == _FILES:
        return " ".join((*flags, "--require-parameter --force-files"))
    words = "(__fish_complete_directories)" if value == _DIRECTORIES else "" if value == _NOTHING else value
    return " ".join((*flags, "--exclusive", f"--arguments {_fish_quoted(words)}"))


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _verb_so_far(root: Verb, indent: int) -> Iterator[str]:
    """bash's and zsh's: `verb` takes `word`, where it is a verb below the one that it holds."""
    names = "|".join(_quoted(_key(verb)) for verb in root.all() if verb.path)
    yield f'{" " * indent}case "$verb $word" in {names}) verb="$verb $word" ;; esac'


def _key(verb: Verb) -> str:
    """ " k8s labels"; "" for gpunode itself."""
    return "".join(f" {word}" for word in verb.path)


def _rest(verb: Verb) -> list[str]:
    """What can be typed that is no option: verbs first, then words of arguments."""
    below = [verb.path[-1] for verb in verb.verbs]
    return [*below, *chain.from_iterable(choices_of(argument) for argument in verb.arguments)]


def _flags(verb: Verb) -> Iterable[str]:
    return chain.from_iterable(option.flags for option in verb.options)


def _values(root: Verb) -> dict[str, list[str]]:
    """What can follow an option ("text json", or one of the three kinds), and the places where: " check --format"."""
    places: dict[str, list[str]] = {}
    for verb in root.all():
        for option in verb.options:
            value = _value(option)
            if value is not None:
                places.setdefault(value, []).extend(f"{_key(verb)} {flag}" for flag in option.flags)
    return places


def _value(option: Option) -> str | None:
    if option.value is None:
        return None
    if option.choices:
        return " ".join(option.choices)
    return _FILES if option.takes_file else _DIRECTORIES if option.takes_directory else _NOTHING


def _patterns(places: Iterable[str]) -> str:
    return "|".join(map(_quoted, places)) + ")"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
