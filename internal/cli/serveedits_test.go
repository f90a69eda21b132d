package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/internal/longtest"
)

// serving is a running tenon serve with a separate home folder.
type serving struct {
	t          *testing.T
	home, dir  string
	url, token string
	said       spoken
	at         int    // behind what was awaited
	stop       func() // begins to stop it
}

// startServing writes files and starts tenon serve. Names that begin with ~ are in the home folder. MARK is replaced by
// the path of a file that an attack would create.
func startServing(t *testing.T, files map[string]string, flags ...string) *serving {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &serving{t: t, home: home, dir: filepath.Join(home, "work")}
	for k, v := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1"} {
		t.Setenv(k, v)
	}
	s.write(files)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- runQuick(ctx, append([]string{"serve", "-c", s.file(), "--listen", "127.0.0.1:0", "--grace", "1s"}, flags...), stdio{strings.NewReader(""), io.Discard, &s.said})
	}()
	t.Cleanup(func() { cancel(); <-done })
	s.stop = cancel
	s.url, s.at = s.said.await(t, 0, `http://127\.0\.0\.1:\d+`)
	token, err := os.ReadFile(filepath.Join(s.dir, ".tenon", "serve.token"))
	if err != nil && len(flags) == 0 {
		t.Fatal(err)
	}
	s.token = strings.TrimSpace(string(token))
	return s
}

func (s *serving) file() string { return filepath.Join(s.dir, "tenon.yaml") }
func (s *serving) mark() string { return filepath.Join(s.home, "mark") }

// shell returns a command that creates the file MARK.
func (s *serving) shell() string {
	return `{command: sh, args: [-c, "touch ` + s.mark() + `; cat"], lifecycle: eager}`
}

func (s *serving) write(files map[string]string) {
	s.t.Helper()
	for name, text := range files {
		path := filepath.Join(s.dir, name)
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			path = filepath.Join(s.home, rest)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "SHELL", s.shell())), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *serving) read() string {
	s.t.Helper()
	b, err := os.ReadFile(s.file())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// awaits waits for a line of the log.
func (s *serving) awaits(pattern string) { s.t.Helper(); _, s.at = s.said.await(s.t, s.at, pattern) }

// unharmed checks that no command has run.
func (s *serving) unharmed() {
	s.t.Helper()
	if _, err := os.Stat(s.mark()); !errors.Is(err, fs.ErrNotExist) {
		s.t.Error("the command was started")
	}
}

// harmed waits until the command has run, after the owner agreed to it.
func (s *serving) harmed() {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(s.mark()); err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal("the command that the owner agreed to was not started")
		}
	}
}

// ask sends a request with the owner's token.
func (s *serving) ask(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// propose sends a request to change the configuration file. It returns the proposal that waits for the owner.
func (s *serving) propose(method, path, body string) httpapi.Proposal {
	s.t.Helper()
	status, text := s.ask(method, path, body)
	var p httpapi.Proposal
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != http.StatusAccepted || p.ID == "" || p.Digest == "" {
		s.t.Fatalf("%s %s: %d %s, %v", method, path, status, text, err)
	}
	return p
}

func (s *serving) accept(id, digest string) (int, string) {
	s.t.Helper()
	return s.ask(http.MethodPost, "/api/v1/config/proposals/"+id+"/accept", `{"digest":"`+digest+`"}`)
}

// tenon runs a command of the owner in the project's folder.
func (s *serving) tenon(args ...string) (int, string) {
	s.t.Helper()
	var out bytes.Buffer
	status := run(s.t.Context(), append([]string{"-c", s.file()}, args...), stdio{strings.NewReader(""), &out, &out})
	return status, out.String()
}

// sync waits until tenon serve has loaded the current files. It proposes a change, for which the files are loaded, and
// rejects it.
func (s *serving) sync() {
	s.t.Helper()
	p := s.propose(http.MethodPut, "/api/v1/config/servers/sync", `{"entry":{"command":"none"}}`)
	status, text := s.tenon("proposals", "reject", p.ID)
	if status != 0 {
		s.t.Fatalf("%d %s", status, text)
	}
}

// age makes the records of the owner's edits an hour older.
func (s *serving) age() {
	s.t.Helper()
	list, err := filepath.Glob(filepath.Join(s.home, ".local", "state", "tenon", "edits", "*.json"))
	if err != nil || len(list) == 0 {
		s.t.Fatalf("no notes: %v", err)
	}
	for _, path := range list {
		var n editNotes
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &n)
		}
		for i := range n.Edits {
			n.Edits[i].When = n.Edits[i].When.Add(-time.Hour)
		}
		if err == nil {
			b, err = json.Marshal(n)
		}
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

const quietFile = "version: 1\nservers:\n  t: {url: \"http://127.0.0.1:1/mcp\", load_tools: false}\ntools:\n  one: {server: t, arguments: [{name: a}], policy: {approval: always}}\n"

// serverRequests are requests to a tenon serve that would start another server.
var serverRequests = map[string]func(t *testing.T, s *serving){
	"written and started": func(t *testing.T, s *serving) {
		p := s.propose("PUT", "/api/v1/config/servers/evil", evilEntry(s))
		if status, _ := s.ask("POST", "/api/v1/servers/evil/restart", ""); status < 400 {
			t.Errorf("restarted: %d", status)
		}
		if !p.CommandLine || !strings.Contains(p.Command, "tenon proposals accept "+p.ID) || !strings.Contains(fmt.Sprint(p.Differences), "touch "+s.mark()) {
			t.Errorf("%+v", p)
		}
	},
	"accepted by the token": func(t *testing.T, s *serving) {
		p := s.propose("PUT", "/api/v1/config/servers/evil", evilEntry(s))
		if status, text := s.accept(p.ID, p.Digest); status != 403 || !strings.Contains(text, "tenon proposals accept") {
			t.Errorf("%d %s", status, text)
		}
	},
	"accepted as the page": func(t *testing.T, s *serving) {
		p := s.propose("PUT", "/api/v1/config/servers/evil", evilEntry(s))
		status, text := s.ask("POST", "/api/v1/config/proposals/"+p.ID+"/accept", `{"digest":"`+p.Digest+`"}`, "Origin", s.url)
		if status != 403 {
			t.Errorf("%d %s", status, text)
		}
	},
	"accepted with another header": func(t *testing.T, s *serving) {
		p := s.propose("PUT", "/api/v1/config/servers/evil", evilEntry(s))
		for _, h := range [][]string{{"X-Forwarded-For", "127.0.0.1"}, {"X-HTTP-Method-Override", "PUT"}, {"User-Agent", "tenon"}, {"Host", "tenon"}} {
			if status, _ := s.ask("POST", "/api/v1/config/proposals/"+p.ID+"/accept", `{"digest":"`+p.Digest+`"}`, h...); status != 403 {
				t.Errorf("%v: %d", h, status)
			}
		}
	},
	"a dry run that is none": func(t *testing.T, s *serving) {
		if status, _ := s.ask("PUT", "/api/v1/config/servers/evil", strings.TrimSuffix(evilEntry(s), "}")+`,"dry_run":true,"dry_run":false}`); status < 400 && strings.Contains(s.read(), "evil") {
			t.Errorf("%d", status)
		}
	},
	"a program as a workflow's": func(t *testing.T, s *serving) {
		s.propose("PUT", "/api/v1/config/servers/evil", `{"entry":{"url":"http://127.0.0.1:1","headers":{"X":"${HOME}"}}}`)
	},
	"another digest": func(t *testing.T, s *serving) {
		p := s.propose("PUT", "/api/v1/config/servers/a", `{"entry":{"command":"none"}}`)
		q := s.propose("PUT", "/api/v1/config/servers/evil", evilEntry(s))
		if status, text := s.tenon("proposals", "accept", q.ID, "--digest", p.Digest); status == 0 {
			t.Errorf("accepted by the digest of another one: %s", text)
		}
	},
	"no digest and nobody to ask": func(t *testing.T, s *serving) {
		p := s.propose("PUT", "/api/v1/config/servers/evil", evilEntry(s))
		status, text := s.tenon("proposals", "accept", p.ID)
		if status != 8 || !strings.Contains(text, "touch "+s.mark()) || !strings.Contains(text, "--digest "+p.Digest) {
			t.Errorf("%d %s", status, text)
		}
	},
	"the file changes before the agreement": func(t *testing.T, s *serving) {
		p := s.propose("PUT", "/api/v1/config/servers/a", `{"entry":{"command":"none"}}`)
		s.write(map[string]string{"tenon.yaml": strings.Replace(quietFile, "servers:\n", "servers:\n  evil: SHELL\n", 1)})
		if status, text := s.tenon("proposals", "accept", p.ID, "--digest", p.Digest); status == 0 {
			t.Errorf("the agreement to one change is one to another: %s", text)
		}
		s.awaits("held back until you agree")
		if status, text := s.tenon("proposals", "accept", p.ID, "--digest", p.Digest); status == 0 {
			t.Errorf("the agreement to one change is one to another: %s", text)
		}
		s.write(map[string]string{"tenon.yaml": quietFile})
	},
	"rejected": func(t *testing.T, s *serving) {
		p := s.propose("PUT", "/api/v1/config/servers/evil", evilEntry(s))
		if status, _ := s.ask("POST", "/api/v1/config/proposals/"+p.ID+"/reject", "{}"); status != 200 {
			t.Errorf("%d", status)
		}
		if status, text := s.tenon("proposals", "accept", p.ID, "--digest", p.Digest); status == 0 {
			t.Errorf("accepted after it was rejected: %s", text)
		}
	},
	"more than there is room for": func(t *testing.T, s *serving) {
		last := 0
		for i := range maxProposals + 1 {
			last, _ = s.ask("PUT", fmt.Sprintf("/api/v1/config/servers/s%d", i), evilEntry(s))
		}
		if last != 429 {
			t.Errorf("%d", last)
		}
		_, text := s.ask("GET", "/api/v1/config/proposals", "")
		_, id, _ := strings.Cut(text, `"id":"`)
		s.ask("POST", "/api/v1/config/proposals/"+id[:strings.Index(id, `"`)]+"/reject", "{}")
	},
	"a large one": func(t *testing.T, s *serving) {
		if status, _ := s.ask("PUT", "/api/v1/config/servers/evil", `{"entry":{"command":"sh","args":["`+strings.Repeat("x", maxProposed)+`"]}}`); status != 413 {
			t.Errorf("%d", status)
		}
	},
	"one that leads to tenon's files": func(t *testing.T, s *serving) {
		if status, text := s.ask("PUT", "/api/v1/config/servers/evil", `{"entry":{"command":"sh","args":["-c","echo x > tenon.yaml"]}}`); status != 400 || !strings.Contains(text, "own file") {
			t.Errorf("%d %s", status, text)
		}
	},
}

// TestServerByRequest checks that the token alone is not enough to start a program: a change by a request waits until
// the owner accepts it on the command line.
func TestServerByRequest(t *testing.T) {
	longtest.Skip(t)
	tests := serverRequests
	for name, attack := range tests {
		t.Run("SEC-F3_"+name, func(t *testing.T) {
			s := startServing(t, map[string]string{"tenon.yaml": quietFile})
			attack(t, s)
			s.sync()
			s.unharmed()
			if s.read() != quietFile {
				t.Errorf("the file was written:\n%s", s.read())
			}
		})
	}
}

// evilEntry returns a server entry whose command creates the file MARK.
func evilEntry(s *serving) string {
	return `{"entry":{"command":"sh","args":["-c","touch ` + s.mark() + `; cat"]}}`
}

// TestAgreement checks that accepted changes take effect, and where they can be accepted: a new program only on the
// command line, a rule of a tool also in the workbench.
func TestAgreement(t *testing.T) {
	t.Run("command line", func(t *testing.T) {
		s := startServing(t, map[string]string{"tenon.yaml": quietFile})
		p := s.propose("PUT", "/api/v1/config/servers/good", `{"entry":{"command":"sh","args":["-c","touch `+s.mark()+`; cat"]}}`)
		if status, text := s.tenon("proposals", "list"); status != 0 || !strings.Contains(text, p.ID) || !strings.Contains(text, "servers.good") {
			t.Errorf("%d %s", status, text)
		}
		if status, text := s.tenon("proposals", "accept", p.ID[:8], "--digest", p.Digest); status != 0 {
			t.Fatalf("%d %s", status, text)
		}
		if !strings.Contains(s.read(), "good:") {
			t.Error("it is not written")
		}
		s.ask("POST", "/api/v1/servers/good/restart", "")
		s.harmed()
		if status, text := s.ask("GET", "/api/v1/config/proposals", ""); status != 200 || !strings.Contains(text, `"items":[]`) {
			t.Errorf("%d %s", status, text)
		}
	})
	t.Run("workbench", func(t *testing.T) {
		s := startServing(t, map[string]string{"tenon.yaml": quietFile})
		if status, text := s.ask("PUT", "/api/v1/config/tools/t.one", `{"arguments":[],"policy":{"approval":"never"}}`); status != 202 {
			t.Fatalf("%d %s", status, text)
		}
		list, err := s.ask("GET", "/api/v1/config/proposals", "")
		var all struct{ Items []httpapi.Proposal }
		if json.Unmarshal([]byte(err), &all) != nil || list != 200 || len(all.Items) != 1 || all.Items[0].CommandLine {
			t.Fatalf("%d %s", list, err)
		}
		p := all.Items[0]
		if strings.Contains(s.read(), "never") {
			t.Error("SEC-F9: it is written before the owner agrees")
		}
		if status, _ := s.accept(p.ID, "sha256:00"); status != 409 || strings.Contains(s.read(), "never") {
			t.Errorf("SEC-F3: a blind agreement: %d", status)
		}
		if status, text := s.accept(p.ID, p.Digest); status != 200 || !strings.Contains(s.read(), "never") {
			t.Errorf("%d %s\n%s", status, text, s.read())
		}
		if _, text := s.ask("GET", "/api/v1/config", ""); !strings.Contains(text, "never") {
			t.Errorf("it does not hold: %s", text)
		}
	})
	t.Run("lifted", func(t *testing.T) {
		s := startServing(t, map[string]string{"tenon.yaml": quietFile, "~/.config/tenon/config.yaml": "serve: {allow_server_edit: true}\n"})
		status, text := s.ask("PUT", "/api/v1/config/servers/good", `{"entry":{"command":"sh","args":["-c","touch `+s.mark()+`; cat"]}}`)
		if status != 200 || !strings.Contains(text, `"written":true`) || !strings.Contains(s.read(), "good:") {
			t.Errorf("%d %s", status, text)
		}
		s.ask("POST", "/api/v1/servers/good/restart", "")
		s.harmed()
	})
}

// TestLoosensItself edits the files of a running tenon serve as a tool of an agent could. No command may be started,
// and no request may be let through.
func TestLoosensItself(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer web.Close()
	edits := map[string]struct {
		files map[string]string
		check func(t *testing.T, s *serving)
	}{
		"a new server":       {map[string]string{"tenon.yaml": strings.Replace(quietFile, "servers:\n", "servers:\n  evil: SHELL\n", 1)}, nil},
		"another command":    {map[string]string{"tenon.yaml": strings.Replace(quietFile, `{url: "http://127.0.0.1:1/mcp", load_tools: false}`, "SHELL", 1)}, nil},
		"the user's server":  {map[string]string{"~/.config/tenon/config.yaml": "servers:\n  evil: SHELL\n"}, nil},
		"a secret's program": {map[string]string{"tenon.yaml": quietFile + "secrets:\n  k: {command: [touch, MARK]}\nserve: {auth: {tokens: {eve: k}}}\n"}, nil},
		"auth none": {map[string]string{"tenon.yaml": quietFile + "serve: {auth: {type: none}}\n"}, func(t *testing.T, s *serving) {
			own := s.token
			s.token = "none"
			if status, _ := s.ask("GET", "/api/v1/me", ""); status != 401 {
				t.Errorf("without a token: %d", status)
			}
			s.token = own
		}},
		"an origin": {map[string]string{"tenon.yaml": quietFile + "serve: {origins: ['https://evil.example']}\n"}, func(t *testing.T, s *serving) {
			if status, _ := s.ask("GET", "/api/v1/me", "", "Origin", "https://evil.example"); status != 403 {
				t.Errorf("from a foreign page: %d", status)
			}
		}},
		"a rule": {map[string]string{"tenon.yaml": strings.Replace(quietFile, "approval: always", "approval: never", 1)}, func(t *testing.T, s *serving) {
			if _, text := s.ask("GET", "/api/v1/config", ""); strings.Contains(text, "never") {
				t.Errorf("it holds: %s", text)
			}
		}},
		"edits of the API": {map[string]string{"~/.config/tenon/config.yaml": "serve: {allow_server_edit: true}\n"}, func(t *testing.T, s *serving) {
			s.propose("PUT", "/api/v1/config/servers/evil", `{"entry":{"command":"none"}}`)
		}},
	}
	for name, tt := range edits {
		t.Run("SEC-F9_"+name, func(t *testing.T) {
			s := startServing(t, map[string]string{"tenon.yaml": quietFile})
			for k, v := range tt.files {
				tt.files[k] = strings.ReplaceAll(v, "MARK", s.mark())
			}
			s.write(tt.files)
			s.awaits("held back until you agree")
			if tt.check != nil {
				tt.check(t, s)
			}
			s.unharmed()
			if status, text := s.ask("GET", "/api/v1/config/proposals/reload", ""); status != 200 || !strings.Contains(text, `"kind":"reload"`) {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	t.Run("SEC-F9_two quick edits", testTwoQuickEdits)
	t.Run("SEC-F9_tightens and loosens", func(t *testing.T) {
		s := startServing(t, map[string]string{"tenon.yaml": quietFile})
		s.write(map[string]string{"tenon.yaml": strings.Replace(quietFile, "servers:\n", "servers:\n  evil: SHELL\n", 1) + "serve: {ui: false}\n"})
		s.awaits("held back until you agree")
		s.awaits("config reloaded")
		if status, _ := s.ask("GET", "/", ""); status == 200 {
			t.Error("what tightens does not hold")
		}
		s.unharmed()
	})
	t.Run("SEC-F9_an open listener", func(t *testing.T) {
		s := startServing(t, map[string]string{"tenon.yaml": quietFile}, "--listen", "127.0.0.1:0")
		s.write(map[string]string{"tenon.yaml": quietFile + "serve: {listen: '0.0.0.0:1', auth: {type: none}}\n"})
		s.awaits("the last good one stays")
		if status, _ := s.ask("GET", "/api/v1/me", ""); status != 200 {
			t.Errorf("the owner: %d", status)
		}
	})
}

func testTwoQuickEdits(t *testing.T) {
	s := startServing(t, map[string]string{"tenon.yaml": quietFile})
	evil := strings.Replace(quietFile, "servers:\n", "servers:\n  evil: SHELL\n", 1)
	s.write(map[string]string{"tenon.yaml": quietFile + "# nothing\n"})
	s.write(map[string]string{"tenon.yaml": evil})
	s.awaits("held back until you agree")
	_, shown := s.ask("GET", "/api/v1/config/proposals/reload", "")
	var p httpapi.Proposal
	if err := json.Unmarshal([]byte(shown), &p); err != nil {
		t.Fatal(err)
	}
	// Accepting the change that was shown does not accept a file that has changed since then.
	s.write(map[string]string{"tenon.yaml": evil + "# more\n"})
	if status, text := s.tenon("proposals", "accept", "reload", "--digest", p.Digest); status == 0 {
		t.Errorf("accepted: %s", text)
	}
	s.sync()
	s.unharmed()
}

// TestOwnEdits checks that a command of the owner counts as consent to its own change, and to no other change.
func TestOwnEdits(t *testing.T) {
	s := startServing(t, map[string]string{"tenon.yaml": quietFile})
	if status, text := s.tenon("servers", "add", "good", "--", "sh", "-c", "touch "+s.mark()+"; cat"); status != 0 {
		t.Fatalf("%d %s", status, text)
	}
	s.awaits("config reloaded")
	s.ask("POST", "/api/v1/servers/good/restart", "")
	s.harmed()
	with := s.read()
	if status, text := s.tenon("servers", "remove", "good"); status != 0 {
		t.Fatalf("%d %s", status, text)
	}
	s.awaits("config reloaded")
	// A change that the owner made and took back is not accepted for ever. A record of an edit that is older than the
	// current configuration is ignored.
	s.age()
	s.write(map[string]string{"tenon.yaml": s.read() + "# x\n"})
	s.awaits("config reloaded")
	if err := os.Remove(s.mark()); err != nil {
		t.Fatal(err)
	}
	s.write(map[string]string{"tenon.yaml": with})
	s.awaits("held back until you agree")
	s.unharmed()
	if status, text := s.tenon("servers", "add", "other", "--", "none"); status != 0 {
		t.Fatalf("%d %s", status, text)
	}
	s.awaits("held back until you agree")
	if _, text := s.ask("GET", "/api/v1/servers", ""); strings.Contains(text, `"good"`) {
		t.Errorf("SEC-F9: the owner's edit of a file is an agreement to what another program wrote there: %s", text)
	}
	s.unharmed()
}

// TestPlantedToken checks that a token file that came with a project folder is not accepted as a token, and that
// tenon's own token stays the same.
func TestPlantedToken(t *testing.T) {
	const planted = "tenon_planted_by_the_author_of_the_folder"
	for name, files := range map[string]map[string]string{
		"a token":              {"tenon.yaml": quietFile, ".tenon/serve.token": planted + "\n"},
		"a token and its note": {"tenon.yaml": quietFile, ".tenon/serve.token": planted + "\n", ".tenon/tokens/x": digestOf([]byte(planted + "\n"))},
	} {
		t.Run("SEC-F3_"+name, func(t *testing.T) {
			s := startServing(t, files)
			own := s.token
			s.token = planted
			if status, _ := s.ask("GET", "/api/v1/me", ""); status != 401 {
				t.Errorf("the planted token opens it: %d", status)
			}
			s.token = own
			if status, _ := s.ask("GET", "/api/v1/me", ""); status != 200 || own == planted {
				t.Errorf("the owner's token: %d", status)
			}
		})
	}
}
