// Package testserver is the MCP server of tenon's tests and of the demo. It also shows how a host handles a
// misbehaving server. It is the hidden command `tenon testserver`.
//
//	tenon testserver [--stdio | --http ADDR | --sse ADDR | --ws ADDR | --jsonrpc ADDR] [faults and options]
//
// It is not part of the product's flow: it is the server that servers connects to. Its tools are small and
// fixed (add, greet, echo, slow, fail, image, big, counter, get_weather and more). Its faults have names
// (--fail discover-silent, --garbage, --crash-after 3). It counts requests (--stats FILE), so that a test can
// observe the other side: the number of concurrent calls, cancellations, and received headers.
//
// mcp.Server implements the protocol in both eras; faults are applied before it.
package testserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// Options holds the flags.
type Options struct {
	Kind      string // transport: "" for stdio; http, sse, ws, jsonrpc
	Addr      string // address, except for stdio
	Encoding  string // character encoding of stdin and stdout
	Bare      bool   // jsonrpc: results are bare objects, without content
	Era       string // both, legacy, modern
	Tools     int    // generated tools tool_0001 … instead of the built-in ones; negative for the built-in ones
	More      int    // generated tools in addition to the others
	PageSize  int
	Prompts   bool // more prompts and resources
	NoPrompts bool // no prompts and resources
	// NoSubscribe offers no subscriptions to resources. Touch is the interval at which test://a is reported as updated.
	NoSubscribe bool
	Touch       time.Duration
	Only        string // comma-separated tool names; "" for all
	Delay       time.Duration
	CrashAfter  int    // tools/call requests before the process exits with code 3; 0 for never
	Fail        string // a method, "discover-silent", "discover-exit", "exit", "silent"
	Tasks       bool   // the Tasks extension and a tool that needs it
	Garbage     bool   // lines that are not JSON
	Fault       string // NAME or NAME@MOMENT, see --list-faults
	ListFaults  bool   // print the faults and exit
	Extra       string // file with further tools, one JSON object {definition, result} each
	Stats       string // file that is rewritten after every message
	Effects     string // file to which every call appends its key and its tool
	Ask         string // method with which a legacy client is asked outside of any call
	Auth        string // "bearer:TOKEN", "basic:LOGIN:PASSWORD", "header:NAME:VALUE"
}

// Parse parses the flags of `tenon testserver`.
func Parse(args []string, stderr io.Writer) (Options, error) {
	var o Options
	f := flag.NewFlagSet("testserver", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Bool("stdio", false, "serve on stdin and stdout (the default)")
	for _, k := range kinds {
		f.Func(k.name, "serve "+k.says+" on this `address`, path "+k.path+"; port 0 selects a free one",
			func(addr string) error {
				if o.Kind != "" {
					return fmt.Errorf("--%s is already given", o.Kind)
				}
				o.Kind, o.Addr = k.name, addr
				return nil
			})
	}
	f.StringVar(&o.Encoding, "encoding", "", "read stdin and write stdout in this character encoding")
	f.BoolVar(&o.Bare, "bare", false, "with --jsonrpc: results are bare objects, such as {\"result\": 3}")
	f.StringVar(&o.Era, "era", "both", "both, legacy or modern")
	f.IntVar(&o.Tools, "tools", -1, "offer this number of generated tools instead of the built-in ones")
	f.IntVar(&o.More, "more", 0, "offer this number of generated tools in addition to the others")
	f.IntVar(&o.PageSize, "page-size", 0, "tools per page; 0 for all")
	f.IntVar(&o.PageSize, "page", 0, "the same as --page-size")
	f.StringVar(&o.Only, "only", "", "offer only these tools, by comma-separated `names`")
	f.DurationVar(&o.Delay, "delay", 0, "wait before every answer")
	f.IntVar(&o.CrashAfter, "crash-after", 0, "exit with code 3 at this call")
	f.StringVar(&o.Fail, "fail", "",
		"a `fault`: a method that returns an error, discover-silent, discover-exit, silent, exit")
	f.BoolVar(&o.Tasks, "tasks", false, "support the Tasks extension, with a tool `later` that returns tasks")
	f.BoolVar(&o.Garbage, "garbage", false, "write lines that are not JSON to stdout")
	f.StringVar(&o.Fault, "fault", "", "apply the fault `NAME`, or NAME@connect, @list, @call; see --list-faults")
	f.BoolVar(&o.ListFaults, "list-faults", false, "print the names of all faults, their transports and what they do")
	f.StringVar(&o.Extra, "extra", "", "also offer the tools of a `file`: JSON objects {definition, result}")
	f.BoolVar(&o.Prompts, "prompts", false, "offer more prompts and resources")
	f.BoolVar(&o.NoPrompts, "no-prompts", false, "do not offer the prompt greet_user either")
	f.BoolVar(&o.NoSubscribe, "no-subscribe", false, "offer no subscriptions to resources")
	f.DurationVar(&o.Touch, "touch", 0, "report the resource test://a as updated at this interval")
	f.StringVar(&o.Stats, "stats", "", "keep counts in this `file`")
	f.StringVar(&o.Effects, "effects", "", "append a line for each call to this `file`: key and tool")
	f.StringVar(&o.Ask, "ask", "", "send a legacy client a request with this `method` after initialization")
	f.StringVar(&o.Auth, "auth", "", "require bearer:TOKEN, basic:LOGIN:PASSWORD or header:NAME:VALUE")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("testserver: unexpected argument %q", f.Arg(0))
	}
	return o, nil
}

// Run serves until ctx or stdin ends. Over HTTP the first line on stderr is the URL.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := Parse(args, stderr)
	if err != nil {
		return err
	}
	if o.Fail == "exit" {
		fmt.Fprintln(stderr, "testserver: told to exit")
		os.Exit(3)
	}
	if o.ListFaults {
		return listFaults(stdout)
	}
	s := &server{o: o, stderr: stderr, tasks: map[string]*task{}}
	ctx, cancel := context.WithCancel(ctx)
	defer s.working.Wait()
	defer cancel()
	s.ctx = ctx
	if o.Fault != "" {
		if s.fault, err = choose(o.Fault); err != nil {
			return err
		}
		if kind := cmp.Or(o.Kind, "stdio"); s.fault.on != nil && !slices.Contains(s.fault.on, kind) {
			return fmt.Errorf("testserver: fault %q is for %s, not for %s", s.fault.name,
				strings.Join(s.fault.on, ", "), kind)
		}
	}
	var initialized func(context.Context, mcp.AskFunc)
	if o.Ask != "" {
		initialized = s.initialized
	}
	var extra mcp.ExtraFunc
	var extensions []string
	if o.Tasks {
		extra, extensions = s.asked, []string{mcp.ExtensionTasks}
	}
	var offers func(context.Context, string, json.RawMessage) (json.RawMessage, error)
	if !o.NoPrompts {
		offers = s.prompted
	}
	var watch mcp.WatchFunc
	if !o.NoSubscribe {
		watch = func(context.Context, string) (func(), error) { return func() {}, nil }
	}
	srv, err := mcp.NewServer(mcp.ServerConfig{Initialized: initialized, Offers: offers, Extra: extra,
		Extensions: extensions, OldTasks: o.Tasks, Completions: o.Prompts && !o.NoPrompts,
		Name: "tenon-testserver", Version: "1", PageSize: o.PageSize, Tools: s.tools(),
		Resources: []mcp.ServerResource{{URI: watchedURI, Name: "a", MimeType: "text/plain", Text: "what is in a"}},
		Watch:     watch,
		NoLegacy:  o.Era == "modern", NoModern: o.Era == "legacy" || o.Fail == "initialize", Observe: s.observe,
	})
	if err != nil {
		return err
	}
	s.srv = srv
	if o.Touch > 0 {
		s.working.Go(func() { s.touch(ctx) })
	}
	s.save()
	if s.fault != nil && s.fault.start != nil {
		s.fault.start(s)
	}
	if o.Kind != "" {
		return s.listen(ctx)
	}
	return s.serveStdio(ctx, stdin, stdout)
}

// watchedURI is the resource whose updates are reported.
const watchedURI = "test://a"

// touch reports the resource as updated from time to time.
func (s *server) touch(ctx context.Context) {
	t := time.NewTicker(s.o.Touch)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.srv.ResourceUpdated(watchedURI, nil)
		case <-ctx.Done():
			return
		}
	}
}

// server is the running test server.
type server struct {
	o      Options
	srv    *mcp.Server
	stderr io.Writer
	fault  *chosen                                  // nil for none
	get    func(http.ResponseWriter, *http.Request) // replaces the handler of GET
	post   func(http.ResponseWriter, *http.Request) // replaces the handler of POST
	deaf   bool                                     // continues after the end of stdin

	ctx     context.Context // context of tasks; ends with Run
	working sync.WaitGroup  // tasks

	mu      sync.Mutex
	stats   Stats
	counter int
	mutated bool             // mutate was called
	tasks   map[string]*task // by id; nil for a lost task
}

// Stats holds the counts that --stats writes.
type Stats struct {
	PID         int      `json:"pid"`
	Methods     []string `json:"methods"` // in order, at most 1,000
	Calls       int      `json:"calls"`
	InFlight    int      `json:"in_flight"`
	MaxInFlight int      `json:"max_in_flight"`
	Cancelled   int      `json:"cancelled"`
	Connections int      `json:"connections"`
	Requests    int      `json:"requests,omitempty"` // over HTTP
	// Unauthorized counts the requests without the required credentials.
	Unauthorized int               `json:"unauthorized,omitempty"`
	Ended        bool              `json:"ended,omitempty"` // stdin has ended
	Deleted      int               `json:"deleted"`
	Keys         []string          `json:"keys,omitempty"`    // idempotency keys of calls, at most 1,000
	Headers      map[string]string `json:"headers,omitempty"` // headers of the last HTTP request
	Tools        []string          `json:"tools,omitempty"`   // names of called tools, at most 1,000
	Answers      []string          `json:"answers,omitempty"` // answers of clients, at most 1,000
}

const maxKept = 1000

// count updates the counts and writes them.
func (s *server) count(f func(*Stats)) {
	s.mu.Lock()
	f(&s.stats)
	s.mu.Unlock()
	s.save()
}

func (s *server) save() {
	if s.o.Stats == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.PID = os.Getpid()
	b, err := json.Marshal(&s.stats)
	if err == nil {
		// The rename makes the update atomic for readers.
		tmp := s.o.Stats + ".tmp"
		if err = os.WriteFile(tmp, append(b, '\n'), 0o600); err == nil {
			err = os.Rename(tmp, s.o.Stats)
		}
	}
	if err != nil {
		fmt.Fprintln(s.stderr, "testserver: stats:", err)
	}
}

// observe is called with every request first. It applies the faults of --fail and --crash-after.
func (s *server) observe(ctx context.Context, method string, params []byte) error {
	s.count(func(st *Stats) {
		if len(st.Methods) < maxKept {
			st.Methods = append(st.Methods, method)
		}
		switch method {
		case "notifications/cancelled":
			st.Cancelled++
		case "DELETE":
			st.Deleted++
		case "tools/call":
			st.Calls++
		}
	})
	if s.o.Delay > 0 && !strings.HasPrefix(method, "notifications/") {
		select {
		case <-time.After(s.o.Delay):
		case <-ctx.Done():
		}
	}
	switch {
	case s.o.Fail == "silent", s.o.Fail == "discover-silent" && method == "server/discover":
		<-ctx.Done()
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "too late")
	case s.o.Fail == "discover-exit" && method == "server/discover":
		fmt.Fprintln(s.stderr, "testserver: server/discover is not known here")
		os.Exit(3)
	case s.o.Fail == method:
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "told to fail at %s", method)
	}
	s.mu.Lock()
	calls := s.stats.Calls
	s.mu.Unlock()
	if method == "tools/call" && s.o.CrashAfter > 0 && calls >= s.o.CrashAfter {
		fmt.Fprintln(s.stderr, "testserver: told to crash at this call")
		os.Exit(3)
	}
	return nil
}

// serveStdio serves one connection on stdin and stdout.
func (s *server) serveStdio(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	s.count(func(st *Stats) { st.Connections++ })
	stdin, out, err := transport.Encoded(s.o.Encoding, stdin, stdout)
	if err != nil {
		return err
	}
	if s.o.Garbage {
		out = &noisy{w: out}
		_, _ = io.WriteString(out, "Welcome to the test server\n{\"half\": \n\n")
	}
	lines := transport.NewLines(stdin, out, 0)
	defer func() { _ = lines.Close() }()
	var stream jsonrpc.Stream = lines
	if s.fault != nil {
		stream = newHostile(lines, s.fault, &pipeWire{w: out})
	}
	err = s.srv.Serve(ctx, stream)
	s.count(func(st *Stats) { st.Ended = true })
	if s.deaf {
		time.Sleep(time.Hour)
	}
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// noisy writes a line that is not JSON before every write.
type noisy struct{ w io.Writer }

func (n *noisy) Write(b []byte) (int, error) {
	if _, err := io.WriteString(n.w, "debug: \x1b[31mwriting\x1b[0m\n"); err != nil {
		return 0, err
	}
	return n.w.Write(b)
}

func (s *server) authorized(r *http.Request) bool {
	kind, rest, _ := strings.Cut(s.o.Auth, ":")
	switch kind {
	case "bearer":
		return r.Header.Get("Authorization") == "Bearer "+rest
	case "basic":
		login, password, _ := strings.Cut(rest, ":")
		l, p, ok := r.BasicAuth()
		return ok && l == login && p == password
	case "header":
		name, value, _ := strings.Cut(rest, ":")
		return r.Header.Get(name) == value
	}
	return true
}

// offered limits the tools to --only.
func (s *server) offered(tools []mcp.ServerTool) []mcp.ServerTool {
	if s.o.Only == "" {
		return tools
	}
	only := strings.Split(s.o.Only, ",")
	return slices.DeleteFunc(tools, func(t mcp.ServerTool) bool {
		name := rawjson.String(rawjson.Field(t.Definition, "name"))
		return !slices.Contains(only, name)
	})
}
