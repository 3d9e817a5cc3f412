# shellcheck shell=bash
# Completes convoy's command line in bash: verbs, flags, the choices of a flag, and networks. All
# words are read from the help of the program that is being typed, so that they cannot differ from
# it. If nothing else fits, files are completed.
_convoy() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD - 1]} help verbs i
  local path=()
  COMPREPLY=()
  # Bash splits "--flag=value" into three words, of which "=" is one.
  if [ "$word" = = ]; then word=''; elif [ "$flag" = = ]; then flag=${COMP_WORDS[COMP_CWORD - 2]}; fi
  help=$("$program" --help 2>/dev/null) || return 0
  verbs=$(_convoy_verbs <<<"$help")
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ $'\n'$verbs$'\n' == *$'\n'"${COMP_WORDS[i]}"$'\n'* ]] || continue
    path+=("${COMP_WORDS[i]}")
    help=$("$program" "${path[@]}" --help 2>/dev/null) || return 0
    verbs=$(_convoy_verbs <<<"$help")
  done
  local words
  if [ "$flag" = --model ]; then
    words=$("$program" info 2>/dev/null | sed -n 's/^models *//p' | tr -d , | sed 's/wrnDEPTH_WIDTH//')
  elif [[ $flag == --* ]] && words=$(sed -n "s/^  $flag {\([^}]*\)}.*/\1/p" <<<"$help" | tr '|' ' ') && [ -n "$words" ]; then
    :
  elif [[ $word == -* ]]; then
    words=$(sed -n 's/^  \(--[^ ]*\).*/\1/p' <<<"$help" | tr , ' ')
  else
    words=$verbs
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
_convoy_verbs() { awk '/^Subcommands:/ { on = 1; next } on && /^  [a-z]/ { print $1 }'; }
complete -o bashdefault -o default -F _convoy convoy
