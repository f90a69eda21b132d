package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

const demoQuestion = "What is the weather in London?"

// demoQuestions are the questions that the built-in script answers.
var demoQuestions = []string{demoQuestion, "And in Paris?", "Count one up."}

// knownToDemo reports whether the built-in script answers a question. Case, the short form of "is" and the form of an
// apostrophe do not count.
func knownToDemo(question string) bool {
	question = strings.ReplaceAll(strings.TrimSpace(question), "\u2019", "'")
	return slices.ContainsFunc(demoQuestions, func(q string) bool {
		return strings.EqualFold(question, q) || strings.EqualFold(question, strings.Replace(q, " is ", "'s ", 1))
	})
}

func newDemo(a *app) *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use:   "demo [QUESTION]",
		Short: "Run an agent with the tools of a real MCP server",
		Long: "Starts tenon's own MCP server as a separate process, offers its tools to a model, and asks a\n" +
			"question. It needs no setup. With ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or with an\n" +
			"Ollama or llama.cpp server on this machine, that model answers any question. Without a model, a\n" +
			"built-in script answers only its three questions.",
		Example: "  tenon demo\n  tenon demo \"What is 17 plus 25?\"\n  tenon demo --model ollama/llama3.2",
		RunE: func(cmd *cobra.Command, args []string) error {
			text := cmp.Or(strings.TrimSpace(strings.Join(args, " ")), demoQuestion)
			return a.demo(cmd.Context(), model, text)
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "`MODEL` that answers: provider/name, script:FILE, or demo for the "+
		"built-in script (default: a detected model)")
	return cmd
}

// connectDemo connects tenon's own server where nothing is configured, for the built-in script, which
// answers none of its questions without tools. The server offers only tools that people try; the others are for tests.
func (a *app) connectDemo(cfg *config.Config, o opening) {
	if cfg.Found || cfg.File != "" || a.config != "" || len(cfg.Servers) > 0 || o.adhoc.given() || o.replay != "" {
		return
	}
	server, err := demoServer()
	if err != nil {
		return // the script says that it has no tools
	}
	cfg.Servers = map[string]servers.Config{demoName: server.WithDefaults()}
	cfg.Policy.Pins.Changed = policy.PinsOff // as in demo
}

// demoName is the name of the demo's server.
const demoName = "demo"

func demoServer() (servers.Config, error) {
	exe, err := executable()
	return servers.Config{Command: exe, Args: []string{"testserver", "--stdio"},
		Description: "A small server that is built into tenon, for a first try",
		Include:     []string{"add", "counter", "get_weather", "greet"}}, err
}

// addDemo adds the demo's server to a project that began without a file, for tenon serve. The project has the runs of
// the time before it, and they may wait for a tool of the demo. It adds nothing if the project has a model, or a server
// of this name.
func (a *app) addDemo(ctx context.Context, cfg *config.Config) {
	if !host.KeepsUserStore(a.storeOf(cfg)) || len(cfg.Models) > 0 {
		return
	}
	if _, found := host.DetectModel(ctx, a.lookupEnv, false); found {
		return
	}
	if server, err := demoServer(); err == nil {
		_ = cfg.AddServer(demoName, server, "") // the project's own server of this name stays
	}
}

func (a *app) demo(ctx context.Context, model, text string) (err error) {
	exe, err := executable()
	if err != nil {
		return err
	}
	if model == "" {
		found, ok := host.DetectModel(ctx, a.lookupEnv, true)
		model = found
		if !ok {
			model = host.DemoModel
			a.note("no model key is set and no local model was found: a built-in script answers")
		} else {
			a.hint("model %s", found)
		}
	}
	server := servers.Config{Command: exe, Args: []string{"testserver", "--stdio"}}
	// Pins are off: this program is its own server, and with go run its path changes each time. A pin would refuse the
	// second demo.
	cfg := &config.Config{Servers: map[string]servers.Config{"demo": server.WithDefaults()},
		Policy: policy.Config{Pins: policy.Pins{Changed: policy.PinsOff}}}
	h, err := host.Open(ctx, host.Config{Config: cfg, Home: a.home, Model: model, LookupEnv: a.lookupEnv,
		Version: version().Version, Logger: a.logger(cfg), ShortLived: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	a.hint("> %s", text)
	_, err = a.question(ctx, h, host.Question{Text: text}, false)
	return err
}
