// Package peers tests the built binary with other programs. These are the reference MCP servers from npm,
// aimock as a real HTTP model with both wire formats, and servers in both protocol eras made with the
// official SDKs for Go, Python and TypeScript and with mcp-go. Further peers are supergateway for WebSocket,
// and pyarrow and npm's apache-arrow for tables. The clients of tenon serve are OpenAI's SDKs for Python
// and Node, the clients of the official SDKs for MCP, of fastmcp and of MCP Inspector, mcp-remote, urllib3, fetch-retry,
// prometheus-client and schemathesis.
//
//	tenon (built here) ──all transports──► server-everything, -filesystem, -memory, SDKs, mcp-go, supergateway
//	                   ──recording proxy──► aimock
//
// The tests use no mocks of tenon's own and import nothing of the product: they check what a person at the
// terminal gets. `make peers` installs the peers and sets TENON_PEERS=1; a missing peer is then an error.
// Without it the tests are skipped, because `go test ./...` needs only Go.
package peers

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
)

// peers holds the installation that the tests share.
type peers struct {
	tenon   string // the built binary
	node    string
	modules string // node_modules
}

func TestPeers(t *testing.T) {
	if os.Getenv("TENON_PEERS") != "1" {
		t.Skip("needs Node and packages from npm: make peers installs them and runs this")
	}
	p := &peers{tenon: clitest.Build(t, filepath.Join("..", ".."), "./cmd/tenon"),
		modules: filepath.Join(os.Getenv("TENON_PEERS_DIR"), "node_modules")}
	var err error
	if p.node, err = exec.LookPath("node"); err != nil {
		t.Fatalf("the peers need Node: %v", err)
	}
	if _, err := os.Stat(p.modules); err != nil {
		t.Fatalf("the peers are not installed, make peers does so: %v", err)
	}
	t.Run("Stdio", p.testStdio)
	t.Run("HTTP", p.testHTTP)
	t.Run("SSE", p.testSSE)
	t.Run("Config", p.testConfig)
	t.Run("Asks", p.testAsks)
	t.Run("Models", p.testModels)
	t.Run("Chaos", p.testChaos)
	t.Run("GoSDK", p.testGoSDK)
	t.Run("MCPGo", p.testMCPGo)
	t.Run("Python", p.testPython)
	t.Run("TypeScript", p.testTypeScript)
	t.Run("Supergateway", p.testSupergateway)
	t.Run("Arrow", p.testArrow)
	t.Run("DuckDB", p.testDuck)
	t.Run("Tables", p.testTables)
	t.Run("API", p.testAPI)
	t.Run("Retries", p.testRetries)
	t.Run("ClientTools", p.testClientTools)
	t.Run("GW-2_clients", p.testGatewayClients)
}

// server returns the command of a reference server without npx, which would add a process.
func (p *peers) server(t *testing.T, name string, args ...string) []string {
	t.Helper()
	return append([]string{p.node, p.bin(t, "@modelcontextprotocol", name, "dist", "index.js")}, args...)
}

func (p *peers) bin(t *testing.T, parts ...string) string {
	t.Helper()
	file := filepath.Join(append([]string{p.modules}, parts...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("a peer is missing, make peers installs it: %v", err)
	}
	return file
}

// shell is a [clitest.Shell].
type shell struct{ *clitest.Shell }

func (p *peers) shell(t *testing.T, env ...string) shell {
	t.Helper()
	return shell{clitest.NewShell(t, p.tenon, env...)}
}

// startTime is the time limit for the start of a server, generous because other tests run at the same time.
const startTime = "1m"

// Run is [clitest.Shell.Run]. A server after -- gets startTime.
func (s shell) Run(t *testing.T, args ...string) clitest.Output {
	t.Helper()
	return s.Shell.Run(t, patient(args)...)
}

// OK is [clitest.Shell.OK]. A server after -- gets startTime.
func (s shell) OK(t *testing.T, args ...string) clitest.Output {
	t.Helper()
	return s.Shell.OK(t, patient(args)...)
}

func patient(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return slices.Insert(slices.Clone(args), i, "--connect-timeout", startTime)
	}
	return args
}

// background starts a program that runs until the end of the test. It returns a function for its output so
// far.
func background(t *testing.T, env []string, command ...string) func() string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		b, err := os.ReadFile(log.Name())
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the process has ended, which the test noticed
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(command[len(command)-1]), read())
		}
	})
	return read
}

// answers waits until a URL responds.
func answers(t *testing.T, url string) {
	t.Helper()
	for range 1800 { // 90 s, because other tests run at the same time
		r, err := http.Get(url)
		if err == nil {
			r.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no response at %s", url)
}
