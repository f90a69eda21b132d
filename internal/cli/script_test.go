package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tenonhq/tenon/internal/garbage"
	"github.com/tenonhq/tenon/internal/longtest"
)

var update = flag.Bool("update", false, "rewrite goldens and generated documents")

// TestMain also runs the programs that scripts start: tenon itself, and npx, which records its arguments and then acts
// as tenon's test server. tenon demo starts the test binary as its server, with the argument testserver. In this case
// the tests must not run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "testserver" && filepath.Base(os.Args[0]) != "tenon" {
		os.Exit(run(context.Background(), os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
	}
	testscript.Main(waiting{m}, map[string]func(){
		"tenon": func() {
			garbage.Late(os.LookupEnv) // as package quick does in main programs
			a := newApp(stdio{os.Stdin, os.Stdout, os.Stderr})
			a.admin.Admin = os.Getenv("SCRIPT_ADMIN") // in tests only: the real program reads no variable
			if os.Getuid() != 0 {
				a.admin.CheckOwner = func(string, fs.FileInfo) error { return nil }
			}
			os.Exit(a.main(context.Background(), os.Args[1:]))
		},
		"npx": npx,
	})
}

// waiting runs more tests at the same time than there are cores, because scripts mostly wait for the processes that
// they start.
type waiting struct{ m *testing.M }

func (w waiting) Run() int {
	flag.Parse()
	cores := strconv.Itoa(runtime.GOMAXPROCS(0))
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == cores {
		_ = f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // a number is always valid
	}
	return w.m.Run()
}

// npx appends its arguments, its process id and the name of its working folder to npx.log in that folder.
func npx() {
	dir, err := os.Getwd()
	var line []byte
	if err == nil {
		line, err = json.Marshal(map[string]any{"argv": os.Args[1:], "pid": os.Getpid(), "cwd": filepath.Base(dir)})
	}
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile("npx.log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, err = f.Write(append(line, '\n'))
			_ = f.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(run(context.Background(), []string{"testserver", "--stdio"}, stdio{os.Stdin, os.Stdout, os.Stderr}))
}

// TestScript runs testdata/script. Each script has the files of testdata/accept in its folder, an empty HOME and no key
// of a provider.
func TestScript(t *testing.T) {
	p := scripts()
	p.Dir = "testdata/script"
	testscript.Run(t, p)
}

// underNohup reports whether the tests were started with SIGHUP ignored. tenon then ignores SIGHUP, too. The value is
// read before any test calls signal.Notify, because package signal cannot find out afterwards.
var underNohup = signal.Ignored(syscall.SIGHUP)

// scripts returns the parameters for running scripts from any folder.
func scripts() testscript.Params {
	return testscript.Params{
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			switch name {
			case "nohup":
				return underNohup, nil
			case "root":
				return os.Getuid() == 0, nil
			case "long":
				return longtest.On(), nil
			}
			return false, fmt.Errorf("there is no condition %q", name)
		},
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			env.Setenv("HOME", home)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // with the race detector, each program would end a second later
			env.Setenv("TENON_NO_PROBE", "1")
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			if err := os.WriteFile(filepath.Join(env.WorkDir, "latin1.txt"), []byte("caf\xe9"), 0o600); err != nil {
				return err
			}
			return os.CopyFS(env.WorkDir, os.DirFS("testdata/accept"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":    cmdStatus,
			"json":      cmdJSON,
			"keys":      cmdKeys,
			"inorder":   cmdInorder,
			"messages":  cmdMessages,
			"interrupt": cmdInterrupt,
			"terminate": cmdTerminate,
			"kill9":     cmdKill9,
			"gone":      cmdGone,
			"hangup":    cmdHangup,
			"full":      cmdFull,
			"serve":     cmdServe,
			"providers": cmdProviders,
			"await":     cmdAwait,
			"samelen":   cmdSamelen,
			"samejson":  cmdSamejson,
			"sametools": cmdSametools,
			"capture":   cmdCapture,
			"bytes":     cmdBytes,
			"fill":      cmdFill,

			"sameexport": cmdSameExport,
			"http":       cmdHTTP,
			"shape":      cmdShape,
			"offers":     cmdOffers,
			"canaries":   cmdCanaries,
		},
	}
}

// cmdStatus runs a program and checks its exit status: status 4 tenon …
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// cmdJSON checks a value: json FILE PATH WANT. A path consists of keys and indexes, separated by dots; len is the
// number of elements. If the file has several lines, the last line counts. A number and a colon before the path select
// another line, as in 0:kind.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH WANT")
	}
	text := strings.TrimSpace(ts.ReadFile(args[0]))
	path := args[1]
	if n, rest, ok := strings.Cut(path, ":"); ok {
		i, err := strconv.Atoi(n)
		ts.Check(err)
		lines := strings.Split(text, "\n")
		if i < 0 {
			i += len(lines)
		}
		if i < 0 || i >= len(lines) {
			ts.Fatalf("there are %d lines", len(lines))
		}
		text, path = lines[i], rest
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	ts.Check(d.Decode(&v))
	got, err := jsonAt(v, path)
	if err != nil && !neg {
		ts.Fatalf("%s: %v", path, err)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %s, want %s", path, got, args[2])
	}
}

// cmdSamelen checks that a JSON array is as long as several others together: samelen FILE FILE...
func cmdSamelen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: samelen FILE FILE...")
	}
	length := func(file string) int {
		var list []json.RawMessage
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &list))
		return len(list)
	}
	sum := 0
	for _, file := range args[1:] {
		sum += length(file)
	}
	if n := length(args[0]); n != sum || n == 0 {
		ts.Fatalf("%d and %d elements", n, sum)
	}
}

// cmdSametools checks that the output of tenon tools list has the names and descriptions that the server returned:
// sametools LISTED ANSWERS. ANSWERS has one response of the server per line. If a name must not be sent to a model, the
// name on the wire is compared.
func cmdSametools(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sametools LISTED ANSWERS")
	}
	type tool struct{ Name, Description string }
	var listed []struct {
		tool
		Remote string `json:"remote_name"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &listed))
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	var want, got []tool
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		var answer struct{ Result struct{ Tools []tool } }
		ts.Check(json.Unmarshal([]byte(line), &answer))
		for _, t := range answer.Result.Tools {
			if valid.MatchString(t.Name) {
				want = append(want, t)
			}
		}
	}
	for _, t := range listed {
		if valid.MatchString(t.Remote) {
			got = append(got, t.tool)
		}
	}
	byName := func(a, b tool) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(want, byName)
	slices.SortFunc(got, byName)
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		ts.Fatalf("%d tools, not as their server has them:\n%s", len(got), diff)
	}
}

// cmdSamejson checks that two files hold the same JSON value: samejson FILE FILE
func cmdSamejson(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samejson FILE FILE")
	}
	var a, b any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &a))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &b))
	if diff := cmp.Diff(a, b); diff != "" {
		ts.Fatalf("not the same:\n%s", diff)
	}
}

func jsonAt(v any, path string) (string, error) {
	for _, key := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[key]
			if !ok {
				return "(absent)", nil
			}
			v = next
		case []any:
			if key == "len" {
				return strconv.Itoa(len(at)), nil
			}
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(at) {
				return "", fmt.Errorf("there is no element %s of %d", key, len(at))
			}
			v = at[i]
		default:
			if path != "." {
				return "", fmt.Errorf("%s: %v holds nothing", key, v)
			}
		}
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// cmdSameExport checks that two exports are equal, but for the time at which they were
// written: sameexport FILE FILE.
func cmdSameExport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sameexport FILE FILE")
	}
	when := regexp.MustCompile(`"exported":"[^"]*"`)
	a, b := when.ReplaceAllString(ts.ReadFile(args[0]), ""), when.ReplaceAllString(ts.ReadFile(args[1]), "")
	if diff := cmp.Diff(a, b); diff != "" {
		ts.Fatalf("the exports are not the same:\n%s", diff)
	}
}

// cmdKeys writes the sorted paths of all keys of a JSON value, so that a golden file can fix the API: keys FILE OUT
// [DEPTH]. It leaves out the results of tools.
func cmdKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: keys FILE OUT [DEPTH]")
	}
	depth := 9
	if len(args) > 2 {
		var err error
		depth, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	paths := map[string]bool{}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var v any
		ts.Check(json.Unmarshal([]byte(line), &v))
		keyPaths(v, "", depth, paths)
	}
	text := strings.Join(slices.Sorted(maps.Keys(paths)), "\n") + "\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

func keyPaths(v any, at string, depth int, paths map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			path := strings.TrimPrefix(at+"."+k, ".")
			paths[path] = true
			if depth > 1 && !slices.Contains([]string{"args", "arguments", "input_schema", "output_schema", "raw"}, k) {
				keyPaths(e, path, depth-1, paths)
			}
		}
	case []any:
		for _, e := range v {
			keyPaths(e, at+"[]", depth, paths)
		}
	}
}

// cmdInorder checks that expressions match one after another: inorder FILE RE...
func cmdInorder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: inorder FILE RE...")
	}
	text := ts.ReadFile(args[0])
	for _, re := range args[1:] {
		at := regexp.MustCompile(re).FindStringIndex(text)
		if at == nil {
			ts.Fatalf("%q does not match after what came before", re)
		}
		text = text[at[1]:]
	}
}

// cmdInterrupt starts a program, sends SIGINT once its stdout matches, and
// checks the exit status: interrupt RE N COMMAND ARGS...
func cmdInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt RE N COMMAND ARGS...")
	}
	sendSignal(ts, syscall.SIGINT, args)
}

// cmdTerminate does the same with SIGTERM, and cmdHangup with SIGHUP.
func cmdTerminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminate RE N COMMAND ARGS...")
	}
	sendSignal(ts, syscall.SIGTERM, args)
}

func cmdHangup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: hangup RE N COMMAND ARGS...")
	}
	sendSignal(ts, syscall.SIGHUP, args)
}

// cmdFull runs a program whose stdout is a full disk. The exit status must be 1: full COMMAND ARGS...
func cmdFull(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: full COMMAND ARGS...")
	}
	out, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	ts.Check(err)
	defer out.Close()
	cmd := exec.Command(filepath.Join(binDir(ts), args[0]), args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = ts.MkAbs("."), out, ts.Stderr(), environ(ts)
	_ = cmd.Run() // the status says it
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		ts.Fatalf("status %d, want 1", got)
	}
}

// cmdKill9 kills the test server that writes its counters to a file: kill9 STATS.
func cmdKill9(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: kill9 STATS")
	}
	ts.Check(ofStats(ts, args[0]).Kill())
}

// cmdGone waits until the process of the test server that wrote its counters to a file has ended: gone STATS.
func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone STATS")
	}
	p := ofStats(ts, args[0])
	for deadline := time.Now().Add(time.Minute); p.Signal(syscall.Signal(0)) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("process %d is still there after a minute", p.Pid)
		}
	}
}

func ofStats(ts *testscript.TestScript, file string) *os.Process {
	var st struct{ PID int }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &st))
	p, err := os.FindProcess(st.PID)
	ts.Check(err)
	return p
}

func sendSignal(ts *testscript.TestScript, sig syscall.Signal, args []string) {
	seen := &watched{re: regexp.MustCompile(args[0]), found: make(chan struct{})}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	path, err := exec.LookPath(filepath.Join(binDir(ts), args[2]))
	ts.Check(err)
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), seen, ts.Stderr()
	cmd.Env = environ(ts)
	ts.Check(cmd.Start())
	select {
	case <-seen.found:
	case <-time.After(time.Minute):
		ts.Logf("nothing matched %q within a minute", args[0])
	}
	ts.Check(cmd.Process.Signal(sig))
	_ = cmd.Wait() // the status says it
	_, _ = ts.Stdout().Write([]byte(seen.text.String()))
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("status %d, want %d\n%s", got, want, seen.text.String())
	}
}

// cmdAwait repeats a program until its stdout matches: await RE COMMAND ARGS...
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await RE COMMAND ARGS...")
	}
	re := regexp.MustCompile(args[0])
	for deadline := time.Now().Add(time.Minute); ; {
		err := ts.Exec(args[1], args[2:]...)
		if out := ts.ReadFile("stdout"); err == nil && re.MatchString(out) {
			return
		} else if time.Now().After(deadline) {
			ts.Fatalf("nothing matched %q within a minute; the last output was %s", args[0], out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// cmdCapture sets a variable to the first match of a pattern in a file, or to its
// first group: capture FILE PATTERN NAME.
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: capture FILE PATTERN NAME")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile(args[0]))
	if m == nil {
		ts.Fatalf("no match for %s", args[1])
	}
	ts.Setenv(args[2], m[len(m)-1])
}

// cmdBytes checks the size of a file: bytes FILE LEAST MOST.
func cmdBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: bytes FILE LEAST MOST")
	}
	least, err := strconv.Atoi(args[1])
	ts.Check(err)
	most, err := strconv.Atoi(args[2])
	ts.Check(err)
	if n := len(ts.ReadFile(args[0])); n < least || n > most {
		ts.Fatalf("%s has %d bytes, want %d to %d", args[0], n, least, most)
	}
}

// watched is an output that signals when it matches.
type watched struct {
	mu    sync.Mutex
	re    *regexp.Regexp
	text  strings.Builder
	found chan struct{}
	done  bool
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	if !w.done && w.re.MatchString(w.text.String()) {
		w.done = true
		close(w.found)
	}
	return len(b), nil
}

// binDir is where testscript has put the programs.
func binDir(ts *testscript.TestScript) string {
	dir, _, _ := strings.Cut(ts.Getenv("PATH"), string(filepath.ListSeparator))
	return dir
}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, k := range []string{"PATH", "HOME", "TENON_NO_PROBE", "TMPDIR", "WORK"} {
		env = append(env, k+"="+ts.Getenv(k))
	}
	return env
}

// cmdServe starts tenon testserver on a free port until the script ends, and sets
// a variable to its URL: serve NAME [--sse | --ws | --jsonrpc] ARGS...
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serve NAME ARGS...")
	}
	seen := &watched{re: regexp.MustCompile(`((?:http|ws)://127\.0\.0\.1:[0-9]+\S*)\s`), found: make(chan struct{})}
	kind, rest := "--http", args[1:]
	if len(rest) > 0 && slices.Contains([]string{"--sse", "--ws", "--jsonrpc"}, rest[0]) {
		kind, rest = rest[0], rest[1:]
	}
	cmd := exec.Command(filepath.Join(binDir(ts), "tenon"), append([]string{"testserver", kind, "127.0.0.1:0"}, rest...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = ts.MkAbs("."), seen, seen, environ(ts)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to end
	})
	select {
	case <-seen.found:
	case <-time.After(time.Minute):
		ts.Fatalf("the test server did not say where it listens: %s", seen.text.String())
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	ts.Setenv(args[0], seen.re.FindStringSubmatch(seen.text.String())[1])
}

// cmdFill writes the values of variables into a file, where they stand as @NAME@: fill
// FILE NAME….
func cmdFill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fill FILE NAME…")
	}
	text := ts.ReadFile(args[0])
	for _, name := range args[1:] {
		text = strings.ReplaceAll(text, "@"+name+"@", ts.Getenv(name))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
