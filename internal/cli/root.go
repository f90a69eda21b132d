package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/telemetry"
)

// stdio are the standard streams of a command.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// app is one invocation of tenon: its streams, global flags, and the properties of the terminal.
type app struct {
	stdio
	lookupEnv func(string) (string, bool)
	lines     *lineReader
	logs      *questionLog // the logger's writer

	program     Program
	admin       config.Options // options of the administrator's file; tests set them
	config      string
	configFound bool // the file named config was found, not named by the person, so it needs trust
	format      string
	home        string
	remote      string // address of a tenon serve
	tokenFile   string // path of the file with the token for remote
	logLevel    string
	noColor     bool
	noInput     bool
	quiet       bool
	unescaped   bool                            // --raw: texts from servers are not escaped in a pipe
	trust       bool                            // --trust
	trusted     *config.Config                  // the configuration that passed the trust gate
	agreed      map[string]bool                 // commands in tables that the person agreed to
	lineCount   int                             // number of lines of the terminal; 0 means that the terminal is asked
	found       string                          // the model of questions that no entry names one for
	scripted    string                          // chat: the notice that a built-in script answers
	talking     bool                            // chat: the next question continues the session
	renamedTold bool                            // tellRenamed has already checked the tools
	argv        []string                        // the arguments of this invocation, without the program
	wait        bool                            // --wait: follow a run until its questions are answered elsewhere
	collector   *telemetry.Collector            // nil without telemetry
	serving     bool                            // serve: log at level info
	wanted      []string                        // flags for the output tables of a run
	from        *toolTable                      // table with the tools of a run; nil for the configured tools
	streaming   bool                            // a table is written to stdout, so a workflow's text must not be
	mcp         atomic.Pointer[gateway.Gateway] // gets the notifications of servers
	grace       atomic.Int64                    // serve: time that current steps have to end, in nanoseconds
	checkEvery  time.Duration                   // interval of checks; see checkEvery
	told        []string                        // chat: the problems of servers that were shown last
	warned      []string                        // warnings of the last loaded configuration
	badKey      sync.Once                       // for the warning that a stored key cannot be read, which is given once
	justWritten bool                            // this command has itself written the configuration that it asks about
	onScreen    atomic.Bool                     // the full-screen program of chat is reading the terminal
	remarks     atomic.Bool                     // it shows log records as remarks
	lent        atomic.Int32                    // chat on the screen: the terminal is temporarily used for plain lines
	declined    []string                        // servers whose changed tools a person has not accepted
	disk        slowDisk                        // chat: looks at files that may not answer

	inTTY, outTTY, errTTY bool
	columns               int // width of the terminal; 0 means that the terminal is asked
	outColor, errColor    bool
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, s stdio) int {
	return newApp(s).main(ctx, args)
}

// newApp returns an app whose output passes through screens.
func newApp(s stdio) *app {
	s.out, s.err = newScreen(s.out), newScreen(s.err)
	a := &app{stdio: s, format: formatText, lines: newLineReader(s.in),
		logs: &questionLog{w: s.err}, checkEvery: checkEvery}
	a.lookupEnv = a.variable
	a.look()
	return a
}

func (a *app) main(ctx context.Context, args []string) int {
	ctx, stop := signals(ctx, a.endsSlowly, func() time.Duration { return time.Duration(a.grace.Load()) })
	defer stop()
	defer a.flush()
	a.lines.whole = ctx
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return a.fail(tenon.Errorf(tenon.CodeInvalid, "the argument %q is not UTF-8", arg), nil)
		}
	}
	a.argv = args
	root := newRoot(a, args)
	out := &noting{w: a.out}
	root.SetOut(out)
	args = countedRefs(root, args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if out.err != nil && (err == nil || errors.Is(err, out.err)) {
		err = unwritten(out.err)
	}
	a.collected()
	gaveUp := errorCode(err) == tenon.CodeCancelled || errors.Is(err, errGivenUp)
	if r := (reported{}); ctx.Err() != nil && gaveUp && !errors.As(err, &r) {
		err = interrupted(ctx, err)
	}
	return a.fail(err, args)
}

// fail prints an error that is not printed yet, and returns the exit status.
func (a *app) fail(err error, args []string) int {
	status := exitStatus(err)
	if r := (reported{}); err == nil || errors.As(err, &r) {
		return status
	}
	if u := (unread{}); errors.As(err, &u) {
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
	if errorCode(err) == tenon.CodeCancelled && status == exitInterrupted {
		text = strings.TrimPrefix(text, "tenon: ") // a person stopped the command, so nothing went wrong
		if text == interruptedText {
			text = "stopped by Ctrl-C"
		}
	}
	a.note("%s", text)
	if a.remote != "" && status == exitAuth {
		a.hint("TENON_TOKEN or --token-file FILE gives the token for --remote")
	}
	return status
}

// errorJSON returns the object that -o json prints for an error.
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
			strings.HasPrefix(arg, "-ojson"), strings.HasPrefix(arg, "-o=json"),
			strings.HasPrefix(arg, "--output=json"):
			return true
		}
	}
	return false
}

// verbs are the commands directly below the root, in the order of its help. newRoot adds man separately, because it
// needs the whole tree.
var verbs = []verb{
	{"demo", groupDaily, newDemo},
	{"run", groupDaily, newRun},
	{"chat", groupDaily, newChat},
	{"eval", groupDaily, newEval},
	{"serve", groupDaily, newServe},
	{"gateway", groupDaily, newGateway},
	{"init", groupDaily, newInit},
	{"servers", groupNouns, newServers},
	{"tools", groupNouns, newTools},
	{"prompts", groupNouns, newPrompts},
	{"resources", groupNouns, newResources},
	{"runs", groupNouns, newRuns},
	{"sessions", groupNouns, newSessions},
	{"approvals", groupNouns, newApprovals},
	{"store", groupNouns, newStore},
	{"proposals", groupNouns, newProposals},
	{"models", groupNouns, newModels},
	{"policy", groupNouns, newPolicy},
	{"tables", groupNouns, newTables},
	{"workflows", groupNouns, newWorkflows},
	{"schedules", groupNouns, newSchedules},
	{"stats", groupNouns, newStats},
	{"config", groupOther, newConfig},
	{"trust", groupOther, newTrust},
	{"doctor", groupOther, newDoctor},
	{"docs", groupOther, newDocs},
	{"service", groupOther, newService},
	{"upgrade", groupOther, newUpgrade},
	{"version", groupOther, newVersion},
	{"testserver", "", newTestserver},
}

// verbs returns the verbs of this program.
func (a *app) verbs() []verb {
	if a.program.Cluster == nil {
		return verbs
	}
	return append(slices.Clip(verbs), verb{"worker", groupDaily, newWorker})
}

type verb struct {
	name, group string
	make        func(*app) *cobra.Command
}

// newRoot returns the root command. If the arguments begin with a verb, it creates only the command of that verb,
// because creating all commands takes a tenth of the time of a short run.
func newRoot(a *app, args []string) *cobra.Command {
	root := group("tenon", "An MCP host: agents that use the tools of any MCP server")
	root.Long = "tenon connects agents to tools. It connects to MCP servers, decides which tools an agent sees and\n" +
		"under which rules, and runs the agent's loop durably.\n\nBegin with: tenon demo"
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
	f.VarP(&enum{&a.format, []string{formatText, formatJSON, formatJSONL}}, "output", "o",
		"`FORMAT` of the result: text, json, jsonl")
	f.StringVar(&a.home, "home", "", "`FOLDER` of the store (default: .tenon next to the configuration)")
	f.StringVar(&a.remote, "remote", "", "use the tenon serve at `URL`; its token comes from --token-file or "+
		"TENON_TOKEN")
	f.StringVar(&a.tokenFile, "token-file", "", "`FILE` of the token for --remote")
	f.Var(&enum{&a.logLevel, []string{"debug", "info", "warn", "error"}}, "log-level",
		"lowest `LEVEL` to log: debug, info, warn, error (default: warn)")
	f.BoolVar(&a.noColor, "no-color", false, "use no colors, as with NO_COLOR")
	f.BoolVar(&a.noInput, "no-input", false, "do not ask; exit with status 8 if a decision is needed")
	f.BoolVar(&a.trust, "trust", false, "trust the project of this folder without asking, and remember it")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only results and errors")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.colours()
		if err := a.checkAdmin(cmd); err != nil {
			return err
		}
		if err := a.checkWrites(cmd); err != nil {
			return err
		}
		return a.checkRemote(cmd)
	}
	root.AddGroup(&cobra.Group{ID: groupDaily, Title: "Everyday:"},
		&cobra.Group{ID: groupNouns, Title: "Look at, and act on:"}, &cobra.Group{ID: groupOther, Title: "Setup:"})
	list := a.verbs()
	if i := slices.IndexFunc(list, func(v verb) bool { return len(args) > 0 && args[0] == v.name }); i >= 0 {
		list = list[i : i+1]
		root.CompletionOptions.DisableDefaultCmd = true
	}
	for _, v := range list {
		c := v.make(a)
		if v.name == "run" || v.name == "chat" {
			c = remotely(c)
		}
		c.GroupID = v.group
		for _, sub := range c.Commands() {
			if sub.Name() == "list" {
				sub.Aliases = append(sub.Aliases, "ls")
			}
		}
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
		if c.Name() == "completion" { // cobra's own version would show its help for any argument
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

// group makes a command that only contains other commands.
func group(use, short string, aliases ...string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Aliases: aliases,
		Args: cobra.ArbitraryArgs, RunE: noVerb,
	}
}

// noVerb runs for a command that only contains others. It shows the help, or an error for an unknown verb.
func noVerb(cmd *cobra.Command, args []string) error {
	switch form := cmd.Flag("output"); {
	case len(args) > 0 && foreignVerb(cmd, args) != "":
		return tenon.Errorf(tenon.CodeInvalid, "there is no verb '%s': %s", strings.TrimPrefix(args[0], refMark),
			foreignVerb(cmd, args))
	case len(args) > 0:
		return usage(cmd, "there is no verb '%s'%s", strings.TrimPrefix(args[0], refMark),
			didYouMean(args[0], below(cmd)))
	case form != nil && form.Value.String() != formatText:
		return usage(cmd, "the verb is missing") // help is no JSON
	}
	return cmd.Help()
}

// newHelp makes the verb that shows the help of another verb or a topic.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [VERB...|TOPIC]", Short: "Help about any command", GroupID: groupOther,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
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

// below returns the names of the subcommands of a command.
func below(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// usage returns an error of the command line that refers to the help of the command.
func usage(cmd *cobra.Command, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if strings.HasSuffix(text, "?") {
		return tenon.Errorf(tenon.CodeInvalid, "%s", text)
	}
	return tenon.Errorf(tenon.CodeInvalid, "%s; see %s --help", text, cmd.CommandPath())
}

// notGiven is the error of an argument that is not given. A person may have used -c as in other programs, where it
// continues a session.
func notGiven(cmd *cobra.Command, what string) error {
	if f := cmd.Flag("config"); f != nil && f.Changed {
		return usage(cmd, "%s is missing; -c %s names the file of the configuration", what, shellWord(f.Value.String()))
	}
	return usage(cmd, "%s is missing", what)
}

// args returns a check of the number of arguments. what names a missing argument in the error.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, got []string) error {
		n := len(got)
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			n = dash
		}
		switch {
		case n < least:
			return notGiven(cmd, what)
		case most >= 0 && n > most && cmd.Name() == "chat":
			return tenon.Errorf(tenon.CodeInvalid, "tenon chat reads the questions that you type; to ask one: "+
				"tenon run %s", shellWord(strings.Join(got, " ")))
		case most >= 0 && n > most:
			return usage(cmd, "unexpected argument '%s'", strings.TrimPrefix(got[most], refMark))
		}
		return nil
	}
}

// enum is a flag whose value is one of several words.
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

// refMark is put before an argument such as "-1", so that it is not parsed as a flag.
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
	at := 0 // index of the verb; global flags may precede it
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

// ref removes the mark from the first argument. Without arguments it returns "-1", the last run or session.
func ref(args []string) string {
	if len(args) == 0 {
		return "-1"
	}
	return strings.TrimPrefix(args[0], refMark)
}

var _ pflag.Value = (*enum)(nil)
