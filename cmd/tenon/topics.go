package main

import "github.com/spf13/cobra"

// topics are the pages of help that belong to no verb.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit statuses mean", Long: exitCodesHelp()},
		{Use: "environment", Short: "The environment variables that count", Long: environmentHelp},
		{Use: "formatting", Short: "What is printed where, and in which form", Long: formattingHelp},
	}
}

const environmentHelp = `These variables count:

  TENON_CONFIG       the configuration file, as -c
  TENON_TOKEN        the token for --remote
  TENON_KEYRING      off: nothing is kept in the system's keyring; the key of kept sign-ins is a file
  TENON_NO_PROBE     set: no look for a local model on loopback
  ANTHROPIC_API_KEY  the key of provider anthropic
  OPENAI_API_KEY     the key of provider openai
  GEMINI_API_KEY     the key of provider gemini
  NO_COLOR           set: no colours (https://no-color.org)
  CLICOLOR_FORCE     set and not 0: colours without a terminal, too
  VISUAL, EDITOR     the editor for the arguments of a call that asks
  XDG_CONFIG_HOME    where tenon/config.yaml, your own configuration, lies (default ~/.config)
  XDG_STATE_HOME     where the store lies outside of a project, and your consents and sign-ins (default ~/.local/state)
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY

A file .env beside tenon.yaml is read for ${VAR} in it. A server's process gets PATH, HOME, USER, LANG and TMPDIR
and what the keys env, env_file and inherit_env say, nothing else.`

const formattingHelp = `Results go to stdout, everything else to stderr.

  -o text   the default. On a terminal: aligned columns, relative times, colours. Otherwise: columns separated by
            tabs without a header, times in RFC 3339.
  -o json   one JSON value: an object, or an array for lists.
  -o jsonl  one JSON value a line: the items of a list, or the stored events of a run as they come.

The text of an answer is streamed on a terminal; otherwise it is printed when it is whole, so that $(tenon run ...) is
the answer and nothing else.

With json and jsonl there is nothing but JSON on stdout. A failure prints {"error":{"code":"...","message":"..."}},
as well as the text on stderr; a run that failed under -o json prints its report, which has the same key. The result of
tools call -o json is the server's own, byte for byte.

What comes from servers and models is escaped before it is shown on a terminal: control characters and characters that
turn the direction of text are printed as \x1b or \u202e.`
