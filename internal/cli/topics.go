package cli

import "github.com/spf13/cobra"

// topics are the help pages that belong to no command.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "The exit statuses and their meanings", Long: exitCodesHelp()},
		{Use: "environment", Short: "The environment variables of tenon", Long: environmentHelp},
		{Use: "formatting", Short: "The output formats, on stdout and stderr", Long: formattingHelp},
	}
}

const environmentHelp = `tenon reads these variables:

  TENON_CONFIG       the configuration file, like -c
  TENON_TRUST        all: trust every project, whoever owns its files, as in a container;
                     no file can set it
  TENON_STORE_KEY    the key that signs the store, at least 32 characters, in place of
                     store.key in the state folder; no file can set it
  TENON_TOKEN        the token for --remote
  TENON_KEYRING      off: do not use the system's keyring; the key of stored sign-ins is a file
  TENON_NO_PROBE     set: do not look for a local model on loopback
  ANTHROPIC_API_KEY  the key of provider anthropic
  OPENAI_API_KEY     the key of provider openai
  GEMINI_API_KEY     the key of provider gemini
  NO_COLOR           set: use no colours (https://no-color.org)
  CLICOLOR_FORCE     set and not 0: use colours without a terminal, too
  VISUAL, EDITOR     the editor for the arguments of a call that asks
  XDG_CONFIG_HOME    the folder of tenon/config.yaml, your own configuration (default ~/.config)
  XDG_STATE_HOME     the folder of the store outside of a project, of the record of trusted projects
                     and of your sign-ins (default ~/.local/state)
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY

A file .env next to tenon.yaml provides values for ${VAR} in it. A server's process gets only PATH, HOME, USER, LANG
and TMPDIR, and the variables of the keys env, env_file and inherit_env.`

const formattingHelp = `Results go to stdout, everything else to stderr.

  -o text   the default. On a terminal: aligned columns, relative times, colours. Otherwise: columns separated by
            tabs without a header, times in RFC 3339.
  -o json   one JSON value: an object, or an array for lists.
  -o jsonl  one JSON value a line: the items of a list, or the stored events of a run as they occur.

The text of an answer is streamed on a terminal. Otherwise it is printed when it is complete, so that $(tenon run ...)
contains only the answer.

With json and jsonl, stdout has only JSON. A failure prints {"error":{"code":"...","message":"..."}} on stdout and a
text on stderr. A failed run with -o json prints its report, which has the same key. tools call -o json prints the
server's result byte for byte.

Text from servers and models is escaped before it is shown on a terminal: control characters and characters that
change the direction of text are printed as \u{1b} or \u{202e}.`
