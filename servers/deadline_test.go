package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// neverReady is the main function of a process that writes without end but never answers a request.
func neverReady(how string) {
	for i := range 3 {
		fmt.Fprintln(os.Stderr, "loading", i)
	}
	for i := 0; ; i++ {
		line := "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n"
		if how == "drips" {
			time.Sleep(time.Millisecond)
			line = "x"
		}
		if _, err := os.Stdout.WriteString(line); err != nil {
			return
		}
	}
}

// TestConnectDeadline connects to a process that writes much, or byte by byte, without answering. The attempt must end
// at the deadline. Its error must contain the command line, the last lines on stderr and the cause, each once.
func TestConnectDeadline(t *testing.T) {
	for _, how := range []string{"floods", "drips"} {
		t.Run(how, func(t *testing.T) {
			var failed []string
			for limit := 500 * time.Millisecond; limit < 30*time.Second; limit *= 3 { // time for its last words
				cfg := process("--model", "x")
				cfg.Env[role] = how
				cfg.Timeout, cfg.Protocol = limit, mcp.Modern
				s := started(t, cfg, Options{})
				start := time.Now()
				_, err := s.Tools(t.Context())
				took := time.Since(start)
				_ = s.Close()
				var e *tenon.Error
				want := "could not start MCP server 't': it did not answer server/discover within " + limit.String() + "; command: " + os.Args[0] +
					" --model x; its last words on stderr: loading 0 / loading 1 / loading 2; raise servers.t.timeout if it is slow to start"
				// On an idle machine it takes the timeout plus the time to end the process.
				if errors.As(err, &e) && e.Code == tenon.CodeTimeout && e.Message == want && !strings.Contains(err.Error(), "context") && took < limit+5*time.Second {
					return
				}
				failed = append(failed, fmt.Sprintf("after %s: %v\nwant %s", took, err, want))
			}
			t.Error(strings.Join(failed, "\n"))
		})
	}
}

// TestSlow checks that a server that takes seconds to start is reported once, and that a command that may first
// download a package gets more time.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		takes := 4 * time.Second
		s := faked(Config{Args: []string{"a"}}, func(ctx context.Context) (connection, error) {
			time.Sleep(takes)
			return newFake(), nil
		})
		defer func() { _ = s.Close() }()
		s.opts.Slow = func(st Starting) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, st.Server+": "+st.Target+" "+st.Limit.String())
		}
		if _, err := s.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
		takes = time.Second
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]string{"t: fake a 10s"}, told); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("RP-7_runner_and_stderr", testSlowRunner)
	checkFetches(t)
	checkTimeouts(t)
}

// testSlowRunner checks the progress reports of a command that downloads a package, and of a server that writes much.
func testSlowRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		var s *Server
		s = faked(Config{Command: "npx", Args: []string{"-y", "pkg"}}, func(ctx context.Context) (connection, error) {
			s.said("npm warn x")
			time.Sleep(1500 * time.Millisecond)
			if got := s.Status().Progress; got != "npx is starting pkg, or fetching it first" {
				t.Errorf("status %q", got)
			}
			time.Sleep(4 * time.Second)
			for range 100 { // a flood of lines
				s.said("downloading\x1b[1m 1 MB " + strings.Repeat("x", 1000))
			}
			time.Sleep(13 * time.Second)
			return newFake(), nil
		})
		defer func() { _ = s.Close() }()
		start := time.Now()
		s.opts.Slow = func(st Starting) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%s %.60s", time.Since(start), st))
		}
		if _, err := s.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.said("too late")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]string{"1s npx is starting pkg, or fetching it first", "3s npm warn x",
			`5.5s downloading\u{1b}[1m 1 MB xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`}, told); diff != "" {
			t.Error(diff)
		}
		if st := s.Status(); st.Progress != "" {
			t.Errorf("status %q after the start", st.Progress)
		}
	})
}

// checkFetches checks which package tenon expects a command to download.
func checkFetches(t *testing.T) {
	t.Helper()
	for command, want := range map[string]string{
		"npx -y pkg": "npx pkg", "npx --package=a b": "npx a", "uvx --from git+https://x y": "uvx git+https://x",
		"uv tool run a": "uv a", "uv run server.py": "uv server.py", "uv pip install x": "",
		"bun x a": "bun a", "npm exec -- a": "npm a", "pnpm --dir x dlx a": "pnpm a", "npm start": "",
		"docker run -i --rm -e KEY -v /a:/b mcp/time --x": "docker mcp/time", "docker run -it --name=x img": "docker img",
		"docker --context far run -eA=b img": "docker img", "docker exec c server": "", "go run ./server": "go ./server",
		"deno run -A jsr:@x/y": "deno jsr:@x/y", "cmd /c npx -y a": "npx a", "env -i A=b npx a": "npx a",
		"sh -c cd x && exec npx -y a": "npx a", "bash -lc 'uvx a'": "uvx a", "sudo -n docker run a": "docker a",
		"node server.js": "", "sh server.sh": "", "env": "", "sh -c": "", "pipx run a": "pipx a", "go build": "",
		"dotnet run": "dotnet ", "powershell -Command npx a": "npx a",
	} {
		words := strings.Fields(command)
		program, pkg := (Config{Command: words[0], Args: words[1:]}).fetches()
		if got := program + " " + pkg; program != "" && got != want || (program == "") != (want == "") {
			t.Errorf("RP-7: %s: %q, want %q", command, got, want)
		}
	}
}

// checkTimeouts checks the time that a server has to connect. It is longer if the command may download something.
func checkTimeouts(t *testing.T) {
	t.Helper()
	for command, fetches := range map[string]bool{
		"npx -y @modelcontextprotocol/server-everything": true, `C:\node\npx.cmd -y x`: true, "uvx mcp-server-time": true,
		"uv --quiet run server.py": true, "uv pip install x": false, "/usr/bin/docker run -i --rm mcp/time": true,
		"docker exec c server": false, "pnpm dlx x": true, "npm exec x": true, "npm start": false, "pipx run x": true,
		"node server.js": false, "npxy": false, "tenon testserver": false, "go run ./server": true,
	} {
		words := strings.Fields(command)
		want := 10 * time.Second
		if fetches {
			want = 2 * time.Minute
		}
		if c := (Config{Command: words[0], Args: words[1:]}).WithDefaults(); c.Timeout != want {
			t.Errorf("%s has %s to connect, want %s", command, c.Timeout, want)
		}
	}
	if c := (Config{Command: "npx", Timeout: time.Second}).WithDefaults(); c.Timeout != time.Second {
		t.Errorf("what is written counts, is %s", c.Timeout)
	}
}
