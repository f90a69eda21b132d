package service

import (
	"encoding/xml"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

var update = flag.Bool("update", false, "rewrite goldens and packaging/tenon.service")

// user returns the service of a user whose paths contain characters that service managers expand.
func user() *Spec {
	return &Spec{Name: "tenon-work", Program: "/opt/my tools/tenon", Config: "/home/a b/100%/$x/tenon.yaml",
		Home: `/home/a b/st"o\re`, Path: "/usr/bin:/home/a b/bin", UserHome: "/home/a b", UserConfig: "/home/a b/.config",
		UID: 501, Credentials: nil}
}

func system() *Spec {
	return &Spec{Name: "tenon", System: true, Program: "/usr/bin/tenon", Config: "/etc/tenon/tenon.yaml", Packaged: true}
}

func text(t *testing.T, manager string, s *Spec) string {
	t.Helper()
	m, ok := Find(manager)
	if !ok {
		t.Fatalf("no manager %s", manager)
	}
	if err := m.Check(s); err != nil {
		t.Fatal(err)
	}
	files, err := m.Files(s)
	if err != nil {
		t.Fatal(err)
	}
	return files[len(files)-1].Text // the text of the socket's file, if there is one
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

// TestREL_units compares the service files for all managers with golden files.
func TestREL_units(t *testing.T) {
	secret := user()
	secret.Credentials = []Credential{{"openai", "/home/a b/key"}}
	machine := system()
	machine.Packaged, machine.Program = false, "/usr/local/bin/tenon"
	machine.Credentials = []Credential{{"openai", "/etc/tenon/openai.key"}}
	golden(t, "testdata/user.service", text(t, "systemd", secret))
	golden(t, "testdata/system.service", text(t, "systemd", machine))
	socket := *secret
	socket.Socket, socket.Listen = true, "localhost:8420"
	golden(t, "testdata/user.socket", text(t, "systemd", &socket))
	golden(t, "testdata/agent.plist", text(t, "launchd", user()))
	golden(t, "testdata/task.xml", text(t, "windows", user()))
}

// TestPackagedUnit checks that the packages contain the same unit as tenon service install --system writes.
func TestPackagedUnit(t *testing.T) {
	golden(t, "../../packaging/tenon.service", text(t, "systemd", system()))
	socket := system()
	socket.Socket, socket.Listen = true, "127.0.0.1:8420"
	golden(t, "../../packaging/tenon.socket", text(t, "systemd", socket))
}

// TestREL_units_verified lets systemd check the units, including the characters that it expands.
func TestREL_units_verified(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	odd := filepath.Join(t.TempDir(), `a b%$"\`)
	if err := os.MkdirAll(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "a b%$x;#", "tenon") // systemd requires an existing program
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := user()
	s.Program, s.Config, s.UserConfig = program, filepath.Join(odd, "tenon.yaml"), odd
	s.Credentials = []Credential{{"a.b", filepath.Join(odd, "key")}}
	unit := filepath.Join(t.TempDir(), "tenon-work.service")
	if err := os.WriteFile(unit, []byte(text(t, "systemd", s)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Socket, s.Listen = true, "[::1]:8420"
	socket := filepath.Join(filepath.Dir(unit), "tenon-work.socket")
	if err := os.WriteFile(socket, []byte(text(t, "systemd", s)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", unit, socket).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestREL_units_wellFormed parses the XML files. The unusual paths must be in them unchanged.
func TestREL_units_wellFormed(t *testing.T) {
	s := user()
	s.Config = "/home/<a>&b/tenon.yaml"
	for _, manager := range []string{"launchd", "windows"} {
		var texts strings.Builder
		d := xml.NewDecoder(strings.NewReader(text(t, manager, s)))
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", manager, err)
			}
			if c, ok := token.(xml.CharData); ok {
				texts.Write(c)
			}
		}
		if !strings.Contains(texts.String(), s.Config) {
			t.Errorf("%s: the configuration is not in the texts:\n%s", manager, &texts)
		}
	}
}

func TestREL_invalidServices(t *testing.T) {
	tests := []struct {
		name, manager string
		change        func(*Spec)
		want          string
	}{
		{"name", "systemd", func(s *Spec) { s.Name = "ssh" }, "has to be tenon"},
		{"name with a path", "systemd", func(s *Spec) { s.Name = "tenon-../x" }, "has to be tenon"},
		{"long name", "systemd", func(s *Spec) { s.Name = "tenon-" + strings.Repeat("a", 64) }, "has to be tenon"},
		{"program with quotes", "systemd", func(s *Spec) { s.Program = `/a"b/tenon` }, "does not allow"},
		{"line feed", "systemd", func(s *Spec) { s.Config = "/x\nExecStartPre=/bin/sh" }, "control character"},
		{"line feed in PATH", "systemd", func(s *Spec) { s.Path = "/bin\nUser=root" }, "control character"},
		{"credential", "systemd", func(s *Spec) { s.Credentials = []Credential{{"../x", "/y"}} }, "the credential"},
		{"credential twice", "systemd", func(s *Spec) { s.Credentials = []Credential{{"x", "/y"}, {"x", "/z"}} }, "twice"},
		{"credential of launchd", "launchd", func(s *Spec) { s.Credentials = []Credential{{"x", "/y"}} }, "no credentials"},
		{"socket of launchd", "launchd", func(s *Spec) { s.Socket = true }, "for systemd only"},
		{"socket without port", "systemd", func(s *Spec) { s.Socket, s.Listen = true, "127.0.0.1:0" }, "IP address"},
		{"socket of a name", "systemd", func(s *Spec) { s.Socket, s.Listen = true, "host:80" }, "IP address"},
		{"socket that is off", "systemd", func(s *Spec) { s.Socket, s.Listen = true, "off" }, "IP address"},
		{"system of launchd", "launchd", func(s *Spec) { s.System = true }, "for systemd only"},
		{"program at home", "systemd", func(s *Spec) { *s = *system(); s.Program = "/home/a/go/bin/tenon" }, "/usr/local/bin"},
		{"configuration in tmp", "systemd", func(s *Spec) { *s = *system(); s.Config = "/tmp/tenon.yaml" }, "/etc/tenon"},
		{"store of a system", "systemd", func(s *Spec) { *s = *system(); s.Home = "/srv/x" }, "/var/lib/tenon"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := Find(tt.manager)
			s := user()
			tt.change(s)
			err := m.Check(s)
			if err == nil {
				_, err = m.Files(s)
			}
			if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want invalid with %q", err, tt.want)
			}
		})
	}
}

func TestREL_serviceStatus(t *testing.T) {
	tests := []struct {
		name, manager, output string
		installed             bool
		want                  Status
	}{
		{"not installed", "systemd", "", false, Status{State: "not installed"}},
		{"runs", "systemd", "MainPID=42\nActiveState=active\nSubState=running\nUnitFileState=enabled\n", true,
			Status{Installed: true, Enabled: true, Running: true, State: "active (running)", PID: 42}},
		{"failed", "systemd", "MainPID=0\nActiveState=failed\nSubState=failed\nUnitFileState=disabled\n", true,
			Status{Installed: true, State: "failed (failed)"}},
		{"listens", "systemd", "Id=x.socket\nActiveState=active\nSubState=listening\nUnitFileState=enabled\n\nId=x.service\n" +
			"MainPID=0\nActiveState=inactive\nSubState=dead\nUnitFileState=disabled\n", true,
			Status{Installed: true, Enabled: true, Running: true, State: "listening (starts at the first connection)"}},
		{"runs with a socket", "systemd", "Id=x.socket\nActiveState=active\nSubState=running\nUnitFileState=enabled\n\n" +
			"Id=x.service\nMainPID=7\nActiveState=active\nSubState=running\nUnitFileState=disabled\n", true,
			Status{Installed: true, Enabled: true, Running: true, State: "active (running)", PID: 7}},
		{"agent runs", "launchd", "gui/501/x = {\n\tactive count = 1\n\tstate = running\n\n\tpid = 77\n\tspawn = {\n\t\tstate = x\n\t}\n}\n",
			true, Status{Installed: true, Enabled: true, Running: true, State: "running", PID: 77}},
		{"agent is stopped", "launchd", "", true, Status{Installed: true, Enabled: true, State: "stopped"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := Find(tt.manager)
			s := user()
			tt.want.Name, tt.want.Manager, tt.want.Scope, tt.want.File = s.Name, tt.manager, "user", m.File(s)
			if diff := cmp.Diff(tt.want, m.Status(s, tt.installed, tt.output)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWindowsWord(t *testing.T) {
	for word, want := range map[string]string{`a`: `a`, ``: `""`, `a b`: `"a b"`, `a"b c`: `"a\"b c"`,
		`a b\`: `"a b\\"`, `a\"b`: `"a\\\"b"`, `C:\x\y`: `C:\x\y`} {
		if got := windowsWord(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

func TestREL_serviceVariables(t *testing.T) {
	s := user()
	s.Credentials = []Credential{{"key", "/key"}}
	read := func(path string) ([]byte, error) {
		if path != "/home/a b/.config/tenon/environment" {
			t.Errorf("reads %s", path)
		}
		return []byte("# X=1\n; Y=2\nA = \"b c\"\nB=\nno line\n"), nil
	}
	lookup := s.Variables(func(name string) (string, bool) { return "own", name == "OWN" }, read)
	want := map[string]string{"A": "b c", "B": "", "OWN": "own", "CREDENTIALS_DIRECTORY": "/run/credentials/tenon-work.service"}
	got := map[string]string{}
	for _, name := range []string{"X", "# X", "Y", "A", "B", "OWN", "NONE", "CREDENTIALS_DIRECTORY"} {
		if v, ok := lookup(name); ok {
			got[name] = v
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
