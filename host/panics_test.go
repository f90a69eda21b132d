package host_test

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// panicCase is a function that the program gives to the host. It panics by calling oops.
type panicCase struct {
	set   func(cfg *host.Config, oops func())
	file  string         // address of a file of the question
	state tenon.RunState // of a run that uses all functions; completed if empty
}

// panicCases has each function that a program can give to a host. The keys are the paths of [funcFields], or the names
// of interface methods.
func panicCases(t *testing.T) map[string]panicCase {
	transform := func(oops func()) []host.Transform {
		return []host.Transform{{Func: func(tool tenon.Tool) *tenon.Tool { oops(); return &tool }}}
	}
	return map[string]panicCase{
		"Wrap": {set: func(cfg *host.Config, oops func()) {
			cfg.Wrap = func(string, tenon.Toolset) tenon.Toolset { oops(); return nil }
		}},
		"Overlay": {set: func(cfg *host.Config, oops func()) {
			cfg.Overlay = func(context.Context, tenon.Principal, string) (o servers.Overlay, err error) { oops(); return }
		}},
		"LookupEnv": {set: func(cfg *host.Config, oops func()) {
			cfg.LookupEnv = func(string) (string, bool) { oops(); return "", false }
		}},
		"Approve": {state: tenon.RunInputRequired, set: func(cfg *host.Config, oops func()) {
			cfg.Config.Policy.Defaults.Approval.Mode = "always"
			cfg.Approve = func(context.Context, host.Approval) (r agent.Ruling, err error) { oops(); return }
		}},
		"Fetch": {file: "https://files.example/a.png", state: noRun, set: func(cfg *host.Config, oops func()) {
			cfg.Fetch = func(context.Context, string) ([]byte, error) { oops(); return nil, nil }
		}},
		"Slow": {set: func(cfg *host.Config, oops func()) {
			late := make(chan struct{})
			var once sync.Once
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				select {
				case <-late:
				case <-t.Context().Done():
				}
				http.NotFound(w, nil)
			}))
			t.Cleanup(s.Close)
			cfg.Config.Servers["late"] = servers.Config{URL: s.URL}
			cfg.Slow = func(servers.Starting) { once.Do(func() { close(late) }); oops() }
		}},
		"Notify": {set: func(cfg *host.Config, oops func()) {
			cfg.Notify = func(servers.Notification) { oops() }
		}},
		"Observe": {set: func(cfg *host.Config, oops func()) {
			cfg.Observe = func(tenon.Run, []tenon.Event) { oops() }
		}},
		"Config.Servers.Transform.Func": {set: func(cfg *host.Config, oops func()) {
			s := cfg.Config.Servers["t"]
			s.Transform = transform(oops)
			cfg.Config.Servers["t"] = s
		}},
		"Config.Servers.Filters.Transform.Func": {set: func(cfg *host.Config, oops func()) {
			s := cfg.Config.Servers["t"]
			s.Filters = []servers.Filter{{Transform: transform(oops)}}
			cfg.Config.Servers["t"] = s
		}},
		"method Functions": {set: func(cfg *host.Config, oops func()) {
			cfg.Functions = []host.Function{host.NewFunction("function", "", func(context.Context, struct{}) (string, error) { oops(); return "", nil })}
		}},
		"method Toolsets.Tools": {set: func(cfg *host.Config, oops func()) {
			cfg.Toolsets["mine"] = ownTools{tools: func() ([]tenon.Tool, error) { oops(); return nil, nil }}
		}},
		"method Toolsets.Call": {set: func(cfg *host.Config, oops func()) {
			cfg.Toolsets["mine"] = ownTools{call: func() (*tenon.Result, error) { oops(); return nil, nil }}
		}},
		"method Models.Name": {set: func(cfg *host.Config, oops func()) {
			cfg.Models["m"] = panicModel{Model: cfg.Models["m"], name: oops, generate: func() {}}
		}},
		"method Models.Generate": {state: tenon.RunFailed, set: func(cfg *host.Config, oops func()) {
			cfg.Models["m"] = panicModel{Model: cfg.Models["m"], name: func() {}, generate: oops}
		}},
		"method Clock": {set: func(cfg *host.Config, oops func()) { cfg.Clock = panicClock(oops) }},
		"method Logger.Handler": {set: func(cfg *host.Config, oops func()) {
			cfg.Logger = slog.New(panicHandler(oops))
		}},
		"method Logger.Handler, and Clock": {set: func(cfg *host.Config, oops func()) {
			cfg.Logger, cfg.Clock = slog.New(panicHandler(oops)), panicClock(oops)
		}},
	}
}

// noRun is the state of a question that is refused before its run begins.
const noRun tenon.RunState = "none"

// panicClock is a clock whose methods all panic.
type panicClock func()

func (c panicClock) Now() time.Time                       { c(); return time.Time{} }
func (c panicClock) Elapsed() time.Duration               { c(); return 0 }
func (c panicClock) After(time.Duration) <-chan time.Time { c(); return nil }

// panicHandler is a log handler that panics for each record.
type panicHandler func()

func (p panicHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (p panicHandler) Handle(context.Context, slog.Record) error { p(); return nil }
func (p panicHandler) WithAttrs([]slog.Attr) slog.Handler        { p(); return nil }
func (p panicHandler) WithGroup(string) slog.Handler             { p(); return nil }

type panicModel struct {
	tenon.Model
	name, generate func()
}

func (m panicModel) Name() string { m.name(); return "m" }

func (m panicModel) Generate(ctx context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	m.generate()
	return m.Model.Generate(ctx, req)
}

// funcFields returns the paths of all function fields that a program can set in a value of a type.
func funcFields(t reflect.Type, path string, above []reflect.Type) (paths []string) {
	switch t.Kind() {
	case reflect.Func:
		return []string{path}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return funcFields(t.Elem(), path, above)
	case reflect.Struct:
		if slices.Contains(above, t) {
			return nil
		}
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				paths = append(paths, funcFields(f.Type, strings.TrimPrefix(path+"."+f.Name, "."), append(slices.Clone(above), t))...)
			}
		}
	}
	return paths
}

// TestRP16_PanicsOfTheProgram lets each function of the program panic whenever it is called: in a listing, in a
// question, and when the host is closed. The process survives, and the run ends or waits.
func TestRP16_PanicsOfTheProgram(t *testing.T) {
	t.Parallel() // it mostly waits
	cases := panicCases(t)
	fields := slices.DeleteFunc(slices.Sorted(maps.Keys(cases)), func(name string) bool { return strings.HasPrefix(name, "method ") })
	want := funcFields(reflect.TypeFor[host.Config](), "", nil)
	want = slices.DeleteFunc(want, func(name string) bool { return name == "Cluster" }) // only Open calls it
	slices.Sort(want)
	if diff := gocmp.Diff(slices.Compact(want), fields); diff != "" {
		t.Fatalf("a function of host.Config has no case (-fields +cases):\n%s", diff)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }, Model: "m",
				Logger: slog.New(slog.DiscardHandler),
				Models: map[string]tenon.Model{"m": once("log {}", "x {}", "function {}")}, Toolsets: map[string]tenon.Toolset{"mine": ownTools{}},
				Config: &config.Config{Servers: map[string]servers.Config{"t": {URL: overHTTP(t), LogLevel: "debug"}},
					Policy: policy.Config{Defaults: policy.Block{Approval: policy.Approval{Mode: "never"}}}}}
			hit := make(chan struct{}, 1)
			tc.set(&cfg, func() {
				select {
				case hit <- struct{}{}:
				default:
				}
				panic("oops")
			})
			h, err := host.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			toolNames(t, h)
			q := host.Question{Text: "q"}
			if tc.file != "" {
				q.Files = []tenon.Part{{Type: tenon.PartImage, URI: tc.file}}
			}
			answer, err := host.Ask(t.Context(), h, q)
			if state := cmp.Or(tc.state, tenon.RunCompleted); answer.Run.State != state && (state != noRun || err == nil) {
				t.Errorf("the run is %s, want %s: %v", answer.Run.State, state, err)
			}
			<-hit
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
