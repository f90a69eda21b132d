package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/mcp"
)

// TestGateway runs the suite's server scenarios through a real tenon serve, with each combination of the client's era
// and the upstream server's era. If the two eras are equal, the server behind the gateway is the one of the official Go
// SDK. That server offers its tools in one era only, so the other combinations use this package's fixture.
func TestGateway(t *testing.T) {
	dir := os.Getenv("TENON_CONFORMANCE_DIR")
	if dir == "" {
		t.Skip("needs Node 22 and a package from npm: make conformance installs them and runs this")
	}
	tenon := clitest.Build(t, filepath.Join("..", ".."), "./cmd/tenon")
	sdk := clitest.Build(t, filepath.Join("..", "rivals"), "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	for _, client := range []string{mcp.LatestLegacy, mcp.Modern} {
		for _, upstream := range []string{mcp.LatestLegacy, mcp.Modern} {
			t.Run("GW-34_client_"+client+"_server_"+upstream, func(t *testing.T) {
				var url string
				if client == upstream {
					url = serveSDK(t, sdk, upstream)
				} else {
					url = serveFixture(t, upstream)
				}
				runServer(t, dir, serveGateway(t, tenon, url, upstream), client)
			})
		}
	}
}

// serveSDK starts the official Go SDK's server of the suite and returns its URL.
func serveSDK(t *testing.T, program, era string) string {
	t.Helper()
	address := "127.0.0.1:" + clitest.FreePort(t)
	start(t, address, exec.Command(program, "-http="+address, fmt.Sprintf("-stateless=%t", era == mcp.Modern)))
	return "http://" + address + "/mcp"
}

// serveGateway starts tenon serve in front of a server and returns the URL of its gateway.
func serveGateway(t *testing.T, tenon, server, era string) string {
	t.Helper()
	s := clitest.NewShell(t, tenon)
	s.WriteFile(t, "tenon.yaml", "servers: {fixture: {url: '"+server+"', protocol: '"+era+
		"', elicitation: client, sampling: client, client_roots: true}}\n"+
		"policy: {defaults: {approval: {mode: never}}}\nserve: {apis: [native, mcp], auth: {type: none}}\n")
	port := clitest.FreePort(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	start(t, "127.0.0.1:"+port, s.Command(ctx, "serve", "-c", "tenon.yaml", "--trust", "--listen", "127.0.0.1:"+port))
	return "http://localhost:" + port + "/mcp"
}

// start starts a program and waits until it listens. The program is killed at the end of the test.
func start(t *testing.T, address string, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the program may have ended, which the suite noticed
		_ = cmd.Wait()
		_ = log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), b)
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen: %v", cmd.Path, err)
		}
	}
}

// runServer runs the server scenarios of a revision. Every required one must pass.
func runServer(t *testing.T, dir, url, revision string) {
	t.Helper()
	suite := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance")
	required := requirements(t, filepath.Join(suite, "requirements", revision+".yaml"), "server")
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, findNode(t, dir), filepath.Join(suite, "dist", "index.js"), "server", "--url", url,
		"--requirements", revision, "-o", out)
	log, err := cmd.CombinedOutput() // the checks are more precise than the exit status
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("the suite did not run: %v\n%s", err, log)
	}
	outcomes := collect(t, out)
	for i := range outcomes {
		outcomes[i].name = strings.TrimPrefix(outcomes[i].name, "server-")
	}
	for _, name := range required {
		if !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.name == name }) {
			t.Errorf("the required scenario %s did not run\n%s", name, log)
		}
	}
	t.Logf("%d scenarios are required, %d ran", len(required), len(outcomes))
	for _, o := range outcomes {
		t.Run(o.name, func(t *testing.T) { o.judgeServer(t, slices.Contains(required, o.name)) })
	}
}

// judgeServer does the same as judge, except that a warning (SHOULD) is only reported.
func (o outcome) judgeServer(t *testing.T, required bool) {
	kept := o
	kept.checks = slices.Clone(o.checks)
	for i, c := range kept.checks {
		if c.Status == "WARNING" {
			t.Logf("warning: %s: %s", c.ID, c.ErrorMessage)
			kept.checks[i].Status = "INFO"
		}
	}
	if required && len(o.checks) > 0 && !slices.ContainsFunc(kept.checks, func(c check) bool { return c.Status == "FAILURE" }) {
		t.Logf("%d checks", len(o.checks))
		return
	}
	kept.judge(t, required)
}
