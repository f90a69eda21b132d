package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
)

// didYouMean returns "; did you mean 'x'?" if a name is similar to the given one. Otherwise it returns the list of
// names if the list is short, and "" if not.
func didYouMean(given string, names []string) string {
	best := tenon.Nearest(given, names)
	for _, n := range names {
		if given != "" && best == "" && strings.HasPrefix(strings.ToLower(n), strings.ToLower(given)) {
			best = n
		}
	}
	switch {
	case best != "":
		return "; did you mean '" + best + "'?"
	case len(names) > 0 && len(names) <= 20:
		names = slices.Sorted(slices.Values(names))
		return "; there are: " + strings.Join(names, ", ")
	}
	return ""
}

// foreignFlags maps flags of other programs (claude, opencode, docker-agent, goose) to the equivalents of tenon.
var foreignFlags = map[string]string{
	"p":                            "tenon run PROMPT prints the answer and ends",
	"print":                        "tenon run PROMPT prints the answer and ends",
	"exec":                         "tenon run PROMPT prints the answer and ends",
	"m":                            "name a model with --model NAME",
	"yolo":                         "tenon run --yes allows every tool call that asks",
	"dangerously-skip-permissions": "tenon run --yes allows every tool call that asks",
	"full-auto":                    "tenon run --yes allows every tool call that asks",
	"continue":                     "-s -1 continues the last session",
	"resume":                       "-s SESSION continues a session, -s -1 the last one",
	"output-format":                "-o text, json or jsonl sets the format",
	"system-prompt":                "set agents.NAME.instructions in tenon.yaml, and name the agent with --agent",
	"append-system-prompt":         "set agents.NAME.instructions in tenon.yaml, and name the agent with --agent",
}

// foreignFlag returns the equivalent of a flag of another program, or "" if the flag is not known.
func foreignFlag(err *pflag.NotExistError) string { return foreignFlags[err.GetSpecifiedName()] }

// foreignVerbs maps commands of other programs to the equivalents of tenon.
var foreignVerbs = map[string]string{
	"ask":    "tenon run PROMPT asks a question",
	"auth":   loginVerbs,
	"exec":   "tenon run PROMPT asks a question",
	"login":  loginVerbs,
	"logout": "tenon models logout PROVIDER removes a kept key, tenon servers logout NAME a sign-in",
	"ls":     "use tenon servers list, tenon tools list or tenon sessions list",
	"ps":     "tenon runs list shows the runs",
	"resume": "tenon run -s -1 continues the last session, tenon runs resume an interrupted run",
	"ui":     webVerb,
	"update": "tenon upgrade installs the newest version",
	"web":    webVerb,
}

const (
	loginVerbs = "tenon models login PROVIDER keeps an API key, tenon servers login NAME signs in to a server"
	webVerb    = "tenon serve has a page for the browser"
)

// foreignVerb returns what a person who passed an unknown first word to tenon probably wants, or "" if it is not
// known.
func foreignVerb(cmd *cobra.Command, args []string) string {
	switch {
	case cmd.HasParent():
		return ""
	case strings.ContainsAny(args[0], " ?") && len(args) == 1:
		return "to ask a question: tenon run " + shellWord(args[0])
	}
	return foreignVerbs[args[0]]
}

// dashed returns an unknown flag with its dashes.
func dashed(err *pflag.NotExistError) string {
	if name := err.GetSpecifiedName(); len(name) > 1 {
		return "--" + name
	}
	return "-" + err.GetSpecifiedName()
}

// flagError describes an invalid flag and suggests a similar one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	switch words := cmd.Flags().Args(); {
	case errors.As(err, &unknown) && cmd.HasSubCommands() && len(words) > 0: // the words before the flag
		return noVerb(cmd, words)
	case errors.As(err, &unknown) && unknown.GetSpecifiedName() == "print" && cmd.Flag("dry-run") != nil:
		return usage(cmd, "%s; did you mean '--dry-run'?", err)
	case errors.As(err, &unknown) && foreignFlag(unknown) != "":
		return tenon.Errorf(tenon.CodeInvalid, "%s has no %s: %s", cmd.CommandPath(), dashed(unknown),
			foreignFlag(unknown))
	case errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1:
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := tenon.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return usage(cmd, "%s; did you mean '--%s'?", err, near)
		}
	case errors.As(err, &value) && errors.As(err, &number) && number.Func != "ParseBool":
		return usage(cmd, "invalid argument %q for --%s: it must be a whole number", value.GetValue(),
			value.GetFlag().Name)
	}
	return usage(cmd, "%s", err)
}
