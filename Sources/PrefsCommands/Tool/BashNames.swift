/// The parts that the argument parser's completion script for bash needs to offer names that an attacker may have chosen.
///
/// The generated script passes names to `compgen -W`, which expands them, and has readline take all candidates for files: it then
/// expands them to find out whether they are folders, and so runs the command in `${x:-$(command)}`. Here names are added as the
/// tool quoted them, and readline takes candidates for files only where files are offered. Names may also contain characters at
/// which readline splits words: `@`, `:` and `=`.
enum BashNames {
  static func added(to script: String) -> String {
    var script = script
    for (generated, replacement) in replacements { script = script.replacing(generated, with: replacement) }
    return script
  }

  private static let replacements = [
    ("complete -o filenames -F", "complete -F"),
    ("__prefs_add_completions -W \"$(__prefs_custom_complete", "__prefs_add_names \"$(__prefs_custom_complete"),
    ("__prefs_add_completions -f", "__prefs_add_files"),
    ("\n__prefs_custom_complete() {\n", functions + "\n__prefs_custom_complete() {\n"),
    (
      "    local -r cur=\"${2}\"\n    local -r prev=\"${3}\"\n",
      """
          local -a typed_words=()
          __prefs_join_words
          local -ar COMP_WORDS=("${typed_words[@]}")
          local -ir COMP_CWORD="$((${#typed_words[@]} - 1))"

          local -xr \(TypedLine.replacedVariable)="_${2}"
          local -r cur="${2}"
          local -r prev="${COMP_WORDS[COMP_CWORD > 0 ? COMP_CWORD - 1 : 0]}"

      """
    ),
  ]

  private static let functions = #"""

    # Sets typed_words to the words up to the cursor, also where readline split them at a character of COMP_WORDBREAKS.
    __prefs_join_words() {
        local rest="${COMP_LINE:0:COMP_POINT}"
        local word
        local -i index count=0
        for ((index = 0; index <= COMP_CWORD; index++)); do
            if ((count == 0)) || [[ "${rest}" = [[:space:]]* ]]; then
                ((count++))
            fi
            rest="${rest##*([[:space:]])}"
            word="${COMP_WORDS[index]}"
            ((index < COMP_CWORD)) || word="${rest}"
            typed_words[count - 1]+="${word}"
            rest="${rest#"${word}"}"
        done
    }

    # The tool has quoted them for this place.
    __prefs_add_names() {
        local name
        while IFS='' read -r name; do
            [[ -z "${name}" ]] || COMPREPLY+=("${name}")
        done <<<"${1}"
    }

    # bash itself expands a dollar sign or a backtick in the name of a file to find out whether it is a folder.
    __prefs_add_files() {
        local name
        compopt -o filenames 2>/dev/null
        while IFS='' read -r name; do
            [[ "${name}" = *['$`']* ]] || COMPREPLY+=("${name}")
        done < <(compgen -f -- "${cur}")
    }
    """#
}
