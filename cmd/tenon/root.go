package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/telemetry"
)

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// app is one invocation: the streams, the flags that all verbs have, and what is
// known about the terminal.
type app struct {
	stdio
	lookupEnv func(string) (string, bool)
	lines     *lineReader

	config    string
	format    string
	home      string
	remote    string // address of a tenon serve
	tokenFile string // of the token for it
	logLevel  string
	noColor   bool
	noInput   bool
	quiet     bool
	talking   bool                 // chat: the session goes on by itself
	wait      bool                 // follow runs until somebody elsewhere has answered
	collector *telemetry.Collector // nil: nothing is counted
	serving   bool                 // serve: the log is what there is to see
	wanted    []string             // flags of the tables that a run is to give
	lent      string               // table whose servers and workflows a run has, which no configuration has
	streaming bool                 // a table goes to stdout: what a workflow says does not
	grace     atomic.Int64         // serve: nanoseconds that what is under way has to end
	told      []string             // chat: the problems of servers at the last question
	warned    []string             // what the configuration, as it was read last, is warned of

	inTTY, outTTY, errTTY bool
	outColor, errColor    bool
}

// run carries out one command line and returns the exit status.
func run(ctx context.Context, args []string, s stdio) int {
	return newApp(s).main(ctx, args)
}

func newApp(s stdio) *app {
	a := &app{stdio: s, lookupEnv: os.LookupEnv, format: formatText, lines: newLineReader(s.in)}
	a.look()
	return a
}

func (a *app) main(ctx context.Context, args []string) int {
	ctx, stop := signals(ctx, a.endsSlowly, func() time.Duration { return time.Duration(a.grace.Load()) })
	defer stop()
	a.lines.whole = ctx
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return a.fail(tenon.Errorf(tenon.CodeInvalid, "the argument %q is not UTF-8", arg), nil)
		}
	}
	root := newRoot(a, args)
	out := &noting{w: a.out}
	root.SetOut(out)
	args = countedRefs(root, args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = unwritten(out.err)
	}
	a.collected()
	gaveUp := errorCode(err) == tenon.CodeCancelled || errors.Is(err, errGivenUp)
	if r := (reported{}); ctx.Err() != nil && gaveUp && !errors.As(err, &r) {
		err = interrupted(ctx, err)
	}
	return a.fail(err, args)
}

// fail tells of an error, once, and returns the exit status.
func (a *app) fail(err error, args []string) int {
	status := exitStatus(err)
	if r := (reported{}); err == nil || errors.As(err, &r) {
		return status
	}
	if a.isJSON() || wantsJSON(args) {
		_ = a.printJSON(map[string]any{"error": errorJSON(err)}) // the text follows on stderr
	}
	text := err.Error()
	var bad config.Errors
	if p := (plain{}); !errors.As(err, &p) && !errors.As(err, &bad) {
		text = "tenon: " + text
	}
	a.note("%s", text)
	if a.remote != "" && status == exitAuth {
		a.hint("TENON_TOKEN or --token-file FILE gives the token for --remote")
	}
	return status
}

// errorJSON is the form of an error under -o json.
func errorJSON(err error) any {
	e := struct {
		Code    tenon.Code      `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
		Errors  config.Errors   `json:"errors,omitempty"`
	}{Code: errorCode(err), Message: err.Error()}
	if te := (*tenon.Error)(nil); errors.As(err, &te) {
		e.Data = te.Data
	}
	errors.As(err, &e.Errors)
	return e
}

// wantsJSON finds the output format in arguments that could not be parsed.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case arg == "--":
			return false
		case (arg == "-o" || arg == "--output") && strings.HasPrefix(next, formatJSON),
			strings.HasPrefix(arg, "-ojson"), strings.HasPrefix(arg, "-o=json"), strings.HasPrefix(arg, "--output=json"):
			return true
		}
	}
	return false
}

// verbs are the commands right below the root, in the order of its help. Man is
// not among them, since it describes the whole tree.
var verbs = []verb{
	{"demo", groupDaily, newDemo},
	{"run", groupDaily, newRun},
	{"chat", groupDaily, newChat},
	{"eval", groupDaily, newEval},
	{"serve", groupDaily, newServe},
	{"init", groupDaily, newInit},
	{"servers", groupNouns, newServers},
	{"tools", groupNouns, newTools},
	{"prompts", groupNouns, newPrompts},
	{"resources", groupNouns, newResources},
	{"runs", groupNouns, newRuns},
	{"sessions", groupNouns, newSessions},
	{"approvals", groupNouns, newApprovals},
	{"models", groupNouns, newModels},
	{"policy", groupNouns, newPolicy},
	{"tables", groupNouns, newTables},
	{"workflows", groupNouns, newWorkflows},
	{"stats", groupNouns, newStats},
	{"config", groupOther, newConfig},
	{"doctor", groupOther, newDoctor},
	{"version", groupOther, newVersion},
	{"testserver", "", newTestserver},
}

type verb struct {
	name, group string
	make        func(*app) *cobra.Command
}

// newRoot makes the tree of commands. Where the arguments begin with a verb it
// has no other one: to make them all takes a tenth of what a short run takes.
func newRoot(a *app, args []string) *cobra.Command {
	root := group("tenon", "An MCP host: agents that answer with the tools of any MCP server")
	root.Long = "tenon joins agents to tools. It connects to MCP servers, decides which tools an agent sees and under\n" +
		"which rules, and runs the agent's loop so that nothing is lost.\n\nBegin with: tenon demo"
	root.Version = version().Version
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetUsageFunc(printUsage)
	root.SetHelpFunc(a.help)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.config, "config", "c", "", "configuration `FILE`; - is stdin (default: tenon.yaml here or above)")
	f.VarP(&enum{&a.format, []string{formatText, formatJSON, formatJSONL}}, "output", "o", "`FORM` of the result: text, json, jsonl")
	f.StringVar(&a.home, "home", "", "`FOLDER` of the store (default: .tenon beside the configuration)")
	f.StringVar(&a.remote, "remote", "", "work on the tenon serve at `URL`, not here; its token is that of --token-file or of TENON_TOKEN")
	f.StringVar(&a.tokenFile, "token-file", "", "`FILE` of the token for --remote")
	f.Var(&enum{&a.logLevel, []string{"debug", "info", "warn", "error"}}, "log-level", "least `LEVEL` that is logged: debug, info, warn, error (default: warn)")
	f.BoolVar(&a.noColor, "no-color", false, "no colours, as with NO_COLOR")
	f.BoolVar(&a.noInput, "no-input", false, "ask nothing; what waits for a decision ends with status 8")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "only results and errors")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.colours()
		return a.checkRemote(cmd)
	}
	root.AddGroup(&cobra.Group{ID: groupDaily, Title: "Everyday:"}, &cobra.Group{ID: groupNouns, Title: "Look at, and act on:"}, &cobra.Group{ID: groupOther, Title: "Setup:"})
	list := verbs
	if i := slices.IndexFunc(verbs, func(v verb) bool { return len(args) > 0 && args[0] == v.name }); i >= 0 {
		list = verbs[i : i+1]
		root.CompletionOptions.DisableDefaultCmd = true
	}
	for _, v := range list {
		c := v.make(a)
		if v.name == "run" || v.name == "chat" {
			c = remotely(c)
		}
		c.GroupID = v.group
		root.AddCommand(c)
	}
	if len(list) == 1 {
		return root
	}
	man := newMan(a)
	man.GroupID = groupOther
	root.AddCommand(man)
	root.AddCommand(topics()...)
	root.SetHelpCommand(newHelp())
	root.SetCompletionCommandGroupID(groupOther)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // it would take any word for a call for help
			c.Args, c.RunE = cobra.ArbitraryArgs, noVerb
		}
	}
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		a.offerIDs(root)
	}
	return root
}

// The groups in the root's help.
const (
	groupDaily = "daily"
	groupNouns = "nouns"
	groupOther = "other"
)

// group makes a command that only has other commands.
func group(use, short string, aliases ...string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Aliases: aliases,
		Args: cobra.ArbitraryArgs, RunE: noVerb,
	}
}

// noVerb answers where a command was given that only has others.
func noVerb(cmd *cobra.Command, args []string) error {
	switch form := cmd.Flag("output"); {
	case len(args) > 0:
		return usage(cmd, "there is no verb '%s'%s", strings.TrimPrefix(args[0], refMark), didYouMean(args[0], below(cmd)))
	case form != nil && form.Value.String() != formatText:
		return usage(cmd, "the verb is missing") // a program reads stdout
	}
	return cmd.Help()
}

// newHelp makes the verb that shows the help of another one, or a topic.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [VERB...|TOPIC]", Short: "Help about any command", GroupID: groupOther,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return below(at), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noVerb(at, rest)
			}
			return at.Help()
		},
	}
}

// below names the commands below one.
func below(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// usage is an error of the command line, with where to read on.
func usage(cmd *cobra.Command, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if strings.HasSuffix(text, "?") {
		return tenon.Errorf(tenon.CodeInvalid, "%s", text)
	}
	return tenon.Errorf(tenon.CodeInvalid, "%s; see %s --help", text, cmd.CommandPath())
}

// args makes a check of the number of arguments that says what is expected.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, got []string) error {
		n := len(got)
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			n = dash
		}
		switch {
		case n < least:
			return usage(cmd, "%s is missing", what)
		case most >= 0 && n > most:
			return usage(cmd, "'%s' is too much", strings.TrimPrefix(got[most], refMark))
		}
		return nil
	}
}

// enum is a flag that takes one of several words.
type enum struct {
	to   *string
	list []string
}

func (e *enum) String() string {
	if e.to == nil {
		return ""
	}
	return *e.to
}

func (e *enum) Type() string { return "word" }

func (e *enum) Set(s string) error {
	if !slices.Contains(e.list, s) {
		return fmt.Errorf("must be one of %s", strings.Join(e.list, ", "))
	}
	*e.to = s
	return nil
}

// counted reports whether an argument is a minus and digits.
func counted(arg string) bool {
	digits, ok := strings.CutPrefix(arg, "-")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// refMark stands before a "-1" that is an argument, so that it is not taken for
// a flag.
const refMark = "last:"

// countedRefs marks arguments such as "-1", which name the last run or session.
func countedRefs(root *cobra.Command, args []string) []string {
	takes := map[string]bool{}
	add := func(f *pflag.Flag) {
		if f.NoOptDefVal == "" {
			takes["--"+f.Name], takes["-"+f.Shorthand] = true, true
		}
	}
	root.PersistentFlags().VisitAll(add)
	at := 0 // of the verb: flags of all verbs may stand before it
	for ; at < len(args) && len(args[at]) > 1 && args[at][0] == '-'; at++ {
		if takes[args[at]] {
			at++
		}
	}
	if at >= len(args) || !slices.Contains([]string{"runs", "sessions", "session"}, args[at]) {
		return args
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(add)
		c.PersistentFlags().VisitAll(add)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	args = slices.Clone(args)
	for i := at + 1; i < len(args); i++ {
		if counted(args[i]) && !takes[args[i-1]] {
			args[i] = refMark + args[i]
		}
	}
	return args
}

// ref takes the mark off again; no argument at all is the last one.
func ref(args []string) string {
	if len(args) == 0 {
		return "-1"
	}
	return strings.TrimPrefix(args[0], refMark)
}

var _ pflag.Value = (*enum)(nil)
