package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// nodeServer and pythonServer are MCP servers over stdio with one tool, who. It says what the server may do.
const nodeServer = `let rest = "";
const answer = (m) => {
  switch (m.method) {
  case "initialize": return {protocolVersion: m.params.protocolVersion, capabilities: {tools: {}},
    serverInfo: {name: "node", version: "1"}};
  case "tools/list": return {tools: [{name: "who", description: "Says who it is", inputSchema: {type: "object"},
    annotations: {readOnlyHint: true}}]};
  case "tools/call": return {content: [{type: "text", text: "node, root: " + (process.getuid() === 0) + ", key: " +
    (process.env.KEY || "").length + " bytes"}]};
  }
};
process.stdin.on("data", (d) => {
  rest += d;
  for (let i; (i = rest.indexOf("\n")) >= 0; rest = rest.slice(i + 1)) {
    const m = JSON.parse(rest.slice(0, i)), result = answer(m);
    if (m.id !== undefined) console.log(JSON.stringify(result ? {jsonrpc: "2.0", id: m.id, result} :
      {jsonrpc: "2.0", id: m.id, error: {code: -32601, message: "no such method"}}));
  }
});
`

const pythonServer = `import json, os, sys
def who():
    open(os.path.join(os.environ["HOME"], "written"), "w").close()
    try:
        open("/etc/tenon/written", "w")
        etc = "writable"
    except OSError as e:
        etc = e.strerror
    return "python, root: %s, /etc: %s" % (str(os.getuid() == 0).lower(), etc)
def answer(m):
    if m["method"] == "initialize":
        return {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "python", "version": "1"}}
    if m["method"] == "tools/list":
        return {"tools": [{"name": "who", "description": "Says who it is", "inputSchema": {"type": "object"},
                           "annotations": {"readOnlyHint": True}}]}
    if m["method"] == "tools/call":
        return {"content": [{"type": "text", "text": who()}]}
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m:
        r = answer(m)
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r} if r else {"jsonrpc": "2.0", "id": m["id"],
              "error": {"code": -32601, "message": "no such method"}}), flush=True)
`

// machineConfig is the operator's configuration of the service.
const machineConfig = `version: 1
serve: {listen: "127.0.0.1:8420"}
servers:
  node: {command: /usr/bin/node, args: [/opt/server.js]}
  python: {command: /usr/bin/python3, args: [/opt/server.py]}
`

// healthy waits until the service answers, and prints its answer.
const healthy = "curl --silent --fail --max-time 20 --retry 30 --retry-connrefused --retry-all-errors --retry-delay 1 " +
	"http://127.0.0.1:8420/healthz\n"

// asToken has tenon use the service with its token.
const asToken = "export TENON_TOKEN=$(cat /var/lib/private/tenon/store/serve.token)\n"

// TestReleaseSystemd installs and runs the service under a systemd that runs: from the package, with an upgrade and a
// removal, and by tenon service, with a credential, a watchdog and a socket, for the machine and for a user.
func TestReleaseSystemd(t *testing.T) {
	dir := released(t)
	files := map[string]string{"opt/server.js": nodeServer, "opt/server.py": pythonServer}
	for name, file := range map[string]string{
		"opt/older.deb": the(t, older(t, dir, "deb"), "tenon_*_"+runtime.GOARCH+".deb"),
		"opt/tenon.deb": the(t, dir, "tenon_*_"+runtime.GOARCH+".deb"),
		"opt/tenon":     filepath.Join(dir, "bin", here().String(), "tenon"),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	m := newMachine(t, files)
	t.Run("REL_deb", m.deb)
	t.Run("REL_system", m.system)
	t.Run("REL_watchdog", m.watchdog)
	t.Run("REL_socket", m.socket)
	t.Run("REL_user", m.user)
}

// deb installs the package of an older version, runs the service with servers of Node and Python, upgrades, removes and
// purges it.
func (m *machine) deb(t *testing.T) {
	m.sh(t, "dpkg --install /opt/older.deb")
	if got, _ := m.try("systemctl", "is-active", "tenon.service"); got != "inactive\n" {
		t.Errorf("after the installation, the service is %q", got)
	}
	if err := writeFile(filepath.Join(m.root, "etc/tenon/tenon.yaml"), []byte(machineConfig)); err != nil {
		t.Fatal(err)
	}
	first := m.sh(t, "systemctl enable --now tenon.service\n"+healthy+"echo; "+
		"systemctl show --value --property=MainPID tenon")
	for tool, want := range map[string]string{"node.who": "node, root: false, key: 0 bytes",
		"python.who": "python, root: false, /etc: Read-only file system"} {
		if got := m.sh(t, asToken+"tenon tools call --remote http://127.0.0.1:8420 "+tool); strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, want %q", tool, got, want)
		}
	}
	m.exposure(t)
	second := m.sh(t, "dpkg --force-confold --install /opt/tenon.deb\n"+healthy+"echo; "+
		"systemctl show --value --property=MainPID tenon")
	if first == second {
		t.Errorf("an upgrade does not restart the service: %q", first)
	}
	// The operator has systemd listen instead, on a port below 1024: docs/guide/operating.md.
	m.sh(t, "systemctl disable --now tenon.service; systemctl enable --now tenon.socket\n"+healthy+
		"mkdir -p /etc/systemd/system/tenon.socket.d\nprintf '[Socket]\\nListenStream=\\nListenStream=127.0.0.1:80\\n' "+
		">/etc/systemd/system/tenon.socket.d/override.conf\nsystemctl daemon-reload\n"+
		"systemctl stop tenon.service; systemctl restart tenon.socket\n"+strings.Replace(healthy, ":8420", ":80", 1)+
		"rm -r /etc/systemd/system/tenon.socket.d")
	if got := m.sh(t, "dpkg --remove tenon; ls /var/lib/private/tenon/store /etc/tenon"); !strings.Contains(got,
		"tenon.db\n") || !strings.Contains(got, "tenon.yaml\n") {
		t.Errorf("after the removal: %s", got)
	}
	if got, _ := m.try("systemctl", "is-active", "tenon.service"); got == "active\n" {
		t.Error("the service runs after the removal")
	}
	got := m.sh(t, "dpkg --purge tenon; ls -A /var/lib/private /var/cache/private; test ! -e /etc/tenon; "+
		"find /etc/systemd/system -name 'tenon*'")
	if strings.Contains(got, "tenon\n") || strings.Contains(got, "tenon.s") {
		t.Errorf("after the purge: %s", got)
	}
}

// exposure has systemd compare the running service with its list of protections.
func (m *machine) exposure(t *testing.T) {
	t.Helper()
	out := m.sh(t, "systemd-analyze security --no-pager tenon.service")
	level := regexp.MustCompile(`exposure level for tenon.service: ([\d.]+)`).FindStringSubmatch(out)
	if level == nil {
		t.Fatalf("no exposure level in:\n%s", out)
	}
	if n, err := strconv.ParseFloat(level[1], 64); err != nil || n >= 2 {
		t.Errorf("exposure level %s, want below 2.0\n%s", level[1], out)
	}
}

// system installs the service of the machine, with a secret that only systemd and the service can read.
func (m *machine) system(t *testing.T) {
	config := strings.Replace(machineConfig, "js]}", "js], env: {KEY: \"${secret:key}\"}}", 1) +
		"secrets: {key: {file: \"${CREDENTIALS_DIRECTORY}/key\"}}\n"
	for name, text := range map[string]string{"etc/tenon/tenon.yaml": config, "etc/tenon/key": "0123456789"} {
		if err := writeFile(filepath.Join(m.root, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	m.sh(t, "chmod 600 /etc/tenon/key; mkdir -p /usr/local/bin; install -m 755 /opt/tenon /usr/local/bin/tenon")
	m.sh(t, "tenon service install --system --trust --credential key=/etc/tenon/key\n"+healthy)
	if got := m.sh(t, "tenon service status --system"); !strings.Contains(got, "active (running)") ||
		!strings.Contains(got, "starts by itself") {
		t.Errorf("status: %s", got)
	}
	if got := m.sh(t, "tenon service logs --system -n 20"); !strings.Contains(got, "tenon serve: listening") {
		t.Errorf("log: %s", got)
	}
	if got := m.sh(t, asToken+"tenon tools call --remote http://127.0.0.1:8420 node.who"); !strings.Contains(got,
		"root: false, key: 10 bytes") {
		t.Errorf("the server was not given the credential: %s", got)
	}
	m.exposure(t)
	m.sh(t, "tenon service stop --system")
	if got, err := m.try("tenon", "service", "status", "--system"); err == nil {
		t.Errorf("status of a stopped service: %s", got)
	}
	m.sh(t, "tenon service start --system\n"+healthy)
}

// watchdog stops the process of the service, which systemd then ends and starts again.
func (m *machine) watchdog(t *testing.T) {
	m.sh(t, "mkdir -p /run/systemd/system/tenon.service.d\n"+
		"printf '[Service]\\nWatchdogSec=2s\\n' >/run/systemd/system/tenon.service.d/watchdog.conf\n"+
		"systemctl daemon-reload; systemctl restart tenon.service\n"+healthy)
	m.sh(t, "kill -STOP $(systemctl show --value --property=MainPID tenon)\n"+
		"journalctl --follow --lines=all --unit=tenon.service | grep -m 1 'Watchdog timeout'\n"+
		"journalctl --follow --lines=all --unit=tenon.service | grep -m 1 'restart counter is at 1'\n"+healthy)
	m.sh(t, "rm -r /run/systemd/system/tenon.service.d; systemctl daemon-reload")
}

// socket has systemd listen: the first connection starts the service, and connections wait while it restarts.
func (m *machine) socket(t *testing.T) {
	m.sh(t, "tenon service install --system --socket --trust --credential key=/etc/tenon/key")
	if got := m.sh(t, "tenon service status --system"); !strings.Contains(got, "listening (starts at the first") {
		t.Errorf("before the first connection: %s", got)
	}
	ask := "curl --silent --fail --max-time 60 http://127.0.0.1:8420/healthz; echo\n"
	m.sh(t, ask)
	if got := m.sh(t, "tenon service status --system"); !strings.Contains(got, "active (running)") {
		t.Errorf("after the first connection: %s", got)
	}
	m.sh(t, "systemctl restart --no-block tenon.service\n"+ask+ask+ask)
	m.sh(t, "tenon service uninstall --system\ntest ! -e /etc/systemd/system/tenon.socket")
	if got, err := m.try("curl", "--silent", "--max-time", "5", "http://127.0.0.1:8420/healthz"); err == nil {
		t.Errorf("something listens after the removal: %s", got)
	}
}

// user installs the service of a user, whose systemd runs without a login.
func (m *machine) user(t *testing.T) {
	as := "setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/ann USER=ann XDG_RUNTIME_DIR=/run/user/1000 "
	m.sh(t, "loginctl enable-linger ann; systemctl start user@1000.service; cd /home/ann\n"+
		as+"tenon init; "+as+"tenon service install --trust\n"+healthy)
	got := m.sh(t, "cd /home/ann; "+as+"tenon service status; "+as+"tenon service logs -n 20")
	if !strings.Contains(got, "active (running)") || !strings.Contains(got, "tenon serve: listening") {
		t.Errorf("status and log: %s", got)
	}
	m.sh(t, "cd /home/ann; "+as+"tenon service uninstall\ntest ! -e .config/systemd/user/tenon.service")
}
