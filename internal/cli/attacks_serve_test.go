package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
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

// TestAttacksOnRemote sends commands to a hostile tenon serve. Its answers are escaped before they reach the terminal,
// no file is written on this machine, and the token is not sent anywhere else.
func TestAttacksOnRemote(t *testing.T) {
	longtest.Skip(t)
	hostile := "\x1b]0;x\a\u202e\u200b\x00\u009b2J"
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	esc := string(quoted)
	item := `{"id":` + esc + `,"run":` + esc + `,"name":` + esc + `,"title":` + esc + `,"session":"ses_1","state":` + esc + `,"server":` + esc + `,"tool":` + esc + `,"error":` + esc + `}`
	answers := map[string]http.HandlerFunc{
		"problem": func(w http.ResponseWriter, _ *http.Request) {
			raidJSON(w, 400, `{"code":`+esc+`,"detail":`+esc+`,"title":`+esc+`}`)
		},
		"items":      func(w http.ResponseWriter, _ *http.Request) { raidJSON(w, 200, `{"items":[`+item+`]}`) },
		"plain text": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = io.WriteString(w, hostile) },
		"one object": func(w http.ResponseWriter, _ *http.Request) { raidJSON(w, 200, item) },
		"a header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/\x1b[2J")
			w.WriteHeader(418)
		},
		"a list": func(w http.ResponseWriter, _ *http.Request) { raidJSON(w, 200, `[`+item+`]`) },
		"members twice": func(w http.ResponseWriter, _ *http.Request) {
			raidJSON(w, 200, `{"items":[],"items":[`+item+`],"Items":[`+item+`]}`)
		},
		"an endless cursor of one": func(w http.ResponseWriter, _ *http.Request) { raidJSON(w, 200, `{"items":[],"next_cursor":"x"}`) },
		"an event stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 1\ndata: {\"kind\":"+esc+",\"text\":"+esc+"}\n\n")
		},
	}
	verbs := map[string][]string{"runs list": nil, "approvals list": nil, "sessions list": nil, "tools list": nil, "servers list": nil, "approvals allow": {"run_1"}, "sessions show": {"ses_1"}, "runs show": {"run_1"}}
	for name, answer := range answers {
		for verb, args := range verbs {
			if name == "an endless cursor of one" && verb != "runs list" {
				continue // one paged command is enough
			}
			t.Run(strings.ReplaceAll(name+" to "+verb, " ", "_"), func(t *testing.T) { attackHostileAnswer(t, answer, verb, args) })
		}
	}
	for name, code := range map[string]int{"moved": 301, "found": 302, "see other": 303, "temporary": 307, "permanent": 308} {
		t.Run("redirect_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { attackRedirect(t, code) })
	}
	t.Run("a_huge_body", attackHugeBody)
	t.Run("a_token_in_the_project's_env", attackPlantedToken)
	t.Run("SEC-G8_an_address_of_a_process_that_is_gone", attackOldAddress)
	t.Run("a_remote_from_the_project's_env", attackPlantedRemote)
}

// attackRedirect checks that a redirect to another origin is not followed.
func attackRedirect(t *testing.T, code int) {
	r := newRaidAlone(t)
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { got = append(got, q.Header.Get("Authorization")) }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, other.URL+q.URL.Path, code) }))
	defer srv.Close()
	t.Setenv("TENON_TOKEN", "token-of-the-owner-0123456789")
	if status, _ := r.bare("runs", "list", "--remote", srv.URL); status == exitOK || len(got) > 0 {
		t.Errorf("status %d, the other origin got %d requests", status, len(got))
	}
	if status, _ := r.bare("approvals", "allow", "run_1", "--remote", srv.URL); status == exitOK || len(got) > 0 {
		t.Errorf("status %d, the other origin got %d requests", status, len(got))
	}
}

func attackHugeBody(t *testing.T) {
	r := newRaidAlone(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":["`)
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 4096 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	t.Setenv("TENON_TOKEN", "token-of-the-owner-0123456789")
	if status, text := r.bare("runs", "list", "--remote", srv.URL); status == exitOK || len(text) > 4096 {
		t.Errorf("status %d, %d bytes", status, len(text))
	}
}

func attackPlantedToken(t *testing.T) {
	r := newRaidAlone(t)
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got = append(got, q.Header.Get("Authorization"))
		raidJSON(w, 200, `{"items":[]}`)
	}))
	defer srv.Close()
	r.write("tenon.yaml", "version: 1\n")
	r.write(".env", "TENON_TOKEN=planted\n")
	r.write(".tenon/serve.url", srv.URL+"\n")
	r.write(".tenon/serve.token", "planted-token-0123456789\n")
	r.bare("runs", "list", "--remote", srv.URL)
	for _, g := range got {
		if strings.Contains(g, "planted") {
			t.Errorf("sent %q", g)
		}
	}
}

func attackOldAddress(t *testing.T) {
	s := startServing(t, map[string]string{"tenon.yaml": "version: 1\n"})
	t.Chdir(s.dir)
	named := func(url string) (int, string) {
		status, out, errs := runHere(t, "-c", s.file(), "runs", "list", "--remote", url)
		return status, out + errs
	}
	if status, text := named(s.url); status != exitOK { // the control
		t.Fatalf("%d %s", status, text)
	}
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got = append(got, q.Header.Get("Authorization"))
		raidJSON(w, 200, `{"items":[]}`)
	}))
	defer srv.Close()
	if err := os.Remove(filepath.Join(s.dir, ".tenon", "serve.sock")); err != nil { // as if the process had been killed
		t.Fatal(err)
	}
	s.write(map[string]string{".tenon/serve.url": srv.URL + "\n"})
	if status, text := named(srv.URL); status == exitOK || len(got) > 0 || !strings.Contains(text, "has ended") {
		t.Errorf("%d %s, sent %q", status, text, got)
	}
}

func attackPlantedRemote(t *testing.T) {
	r := newRaidAlone(t)
	hits := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer srv.Close()
	r.write("tenon.yaml", "version: 1\n")
	r.write(".env", "TENON_REMOTE="+srv.URL+"\nHTTP_PROXY="+srv.URL+"\nTENON_TRUST=all\n")
	r.bare("runs", "list")
	if hits > 0 {
		t.Error("a request was sent")
	}
}

// attackHostileAnswer checks that a command ends and prints nothing hidden, whatever the other tenon answers.
func attackHostileAnswer(t *testing.T, answer http.HandlerFunc, verb string, args []string) {
	r := newRaidAlone(t)
	srv := httptest.NewServer(answer)
	defer srv.Close()
	t.Setenv("TENON_TOKEN", "token-of-the-owner-0123456789")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	status := run(ctx, append(append(strings.Fields(verb), args...), "--remote", srv.URL), stdio{strings.NewReader(""), &out, &errs})
	if ctx.Err() != nil {
		t.Errorf("no end: %s%s", out.String(), errs.String())
	}
	if text := out.String() + errs.String(); strings.ContainsAny(text, "\x1b\a\u202e\u200b\x00\u009b") {
		t.Errorf("status %d: %q", status, text)
	}
	r.absent(filepath.Join(r.dir, ".tenon"))
}

func raidJSON(w http.ResponseWriter, status int, body string) {
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// newRaidAlone makes a folder without a project or a server.
func newRaidAlone(t *testing.T) *raid {
	t.Helper()
	r := &raid{t: t, root: t.TempDir()}
	r.dir = filepath.Join(r.root, "work")
	for k, v := range map[string]string{"XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1", "TENON_TRUST": "", "TENON_CONFIG": "", "TENON_TOKEN": ""} {
		t.Setenv(k, v)
	}
	r.user("owner")
	r.write("empty", "")
	t.Chdir(r.dir)
	return r
}

// bare runs a command without naming a file.
func (r *raid) bare(args ...string) (int, string) {
	r.t.Helper()
	status, out, errs := runHere(r.t, args...)
	return status, out + errs
}

// TestAttacksOnServe lets web pages, other processes and holders of a token try things that the owner did not agree to.
func TestAttacksOnServe(t *testing.T) {
	s := startServing(t, map[string]string{"tenon.yaml": quietFile})
	evil := `{"command":"sh","args":["-c","touch ` + s.mark() + `; cat"]}`
	propose := func() httpapi.Proposal { return s.propose("PUT", "/api/v1/config/servers/evil", `{"entry":`+evil+`}`) }
	drop := func(id string) { s.ask("POST", "/api/v1/config/proposals/"+id+"/reject", "{}") }
	for name, digest := range map[string]string{"empty": "", "short": "sha256:", "star": "*", "null": "sha256:0000000000000000000000000000000000000000000000000000000000000000"} {
		t.Run("accept_with_a_digest_"+name, func(t *testing.T) {
			p := propose()
			defer drop(p.ID)
			if status, _ := s.accept(p.ID, digest); status < 400 {
				t.Errorf("%d", status)
			}
			if status, text := s.tenon("proposals", "accept", p.ID, "--digest", digest); status == exitOK {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	for name, body := range map[string]string{"Digest": `{"Digest":"D"}`, "digest twice": `{"digest":"x","digest":"D"}`, "more": `{"digest":"D","force":true}`, "a list": `["D"]`, "two values": `{"digest":"D"} {"digest":"D"}`} {
		t.Run("accept_with_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := propose()
			defer drop(p.ID)
			if status, _ := s.ask("POST", "/api/v1/config/proposals/"+p.ID+"/accept", strings.ReplaceAll(body, "D", p.Digest)); status < 400 {
				t.Errorf("%d", status)
			}
		})
	}
	for name, id := range map[string]string{"dots": "..%2Fconfig", "NUL": "%00", "other case": "EVIL", "empty": ""} {
		t.Run("a_proposal_named_by_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := propose()
			defer drop(p.ID)
			if status, _ := s.ask("POST", "/api/v1/config/proposals/"+id+"/accept", `{"digest":"`+p.Digest+`"}`); status < 400 {
				t.Errorf("%d", status)
			}
		})
	}
	for name, path := range map[string]string{"dots": "..%2F..%2Fx", "NUL": "a%00b", "newline": "a%0A%20%20evil:%20x", "a right-to-left mark": "a%E2%80%AEb", "a long name": strings.Repeat("a", 5000), "a dot": "a.b"} {
		t.Run("a_server_named_by_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			status, text := s.ask("PUT", "/api/v1/config/servers/"+path, `{"entry":`+evil+`}`)
			var p httpapi.Proposal
			if json.Unmarshal([]byte(text), &p) == nil && p.ID != "" {
				drop(p.ID)
			}
			if status == 200 || s.read() != quietFile {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	for name, h := range map[string][]string{"a foreign page": {"Origin", "https://evil.example"}, "null": {"Origin", "null"}, "our port elsewhere": {"Origin", "http://127.0.0.1.evil.example"}, "a port of loopback": {"Origin", "http://127.0.0.1:1"}} {
		t.Run("asked_by_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if status, text := s.ask("GET", "/api/v1/config", "", h...); status < 400 {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	for name, kind := range map[string]string{"form": "application/x-www-form-urlencoded", "text": "text/plain", "none": "", "multipart": "multipart/form-data", "other": "application/jsonx"} {
		t.Run("a_body_of_type_"+name, func(t *testing.T) {
			if status, text := s.ask("PUT", "/api/v1/config/servers/evil", `{"entry":`+evil+`}`, "Content-Type", kind); status < 400 {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	for name, header := range map[string]string{"lower case scheme and spaces": "bearer  " + s.token + "x", "two tokens": "Bearer x, Bearer " + s.token, "a prefix": "Bearer " + s.token[:len(s.token)-1], "basic": "Basic " + s.token, "nothing": ""} {
		t.Run("a_token_as_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if status, _ := s.ask("GET", "/api/v1/runs", "", "Authorization", header); status != 401 {
				t.Errorf("%d", status)
			}
		})
	}
	t.Run("the_token_of_a_query_writes", func(t *testing.T) {
		if status, _ := s.ask("PUT", "/api/v1/config/servers/evil?access_token="+s.token, `{"entry":`+evil+`}`, "Authorization", ""); status != 401 {
			t.Errorf("%d", status)
		}
	})
	s.unharmed()
	if s.read() != quietFile {
		t.Errorf("the file was written:\n%s", s.read())
	}
}

// TestAttacksOnServeStart tries to start tenon serve with dangerous settings, which must be refused.
func TestAttacksOnServeStart(t *testing.T) {
	for name, tt := range map[string]func(r *raid) []string{
		"no authentication on all addresses": func(r *raid) []string {
			r.write("tenon.yaml", "serve: {listen: \"0.0.0.0:0\", auth: {type: none}}\n")
			return nil
		},
		"no authentication on all of IPv6": func(r *raid) []string {
			r.write("tenon.yaml", "serve: {listen: \"[::]:0\", auth: {type: none}}\n")
			return nil
		},
		"no authentication on an empty host": func(r *raid) []string {
			r.write("tenon.yaml", "serve: {listen: \":0\", auth: {type: none}}\n")
			return nil
		},
		"no authentication, the flag opens it": func(r *raid) []string {
			r.write("tenon.yaml", "serve: {auth: {type: none}}\n")
			return []string{"--listen", "0.0.0.0:0"}
		},
		"no authentication on zero": func(r *raid) []string {
			r.write("tenon.yaml", "serve: {listen: \"0:0\", auth: {type: none}}\n")
			return nil
		},
		"a token file that others read": func(r *raid) []string {
			r.write("tenon.yaml", "version: 1\n")
			r.write("token", "token-of-the-owner-0123456789")
			if err := os.Chmod("token", 0o644); err != nil {
				r.t.Fatal(err)
			}
			return []string{"--token-file", "token", "--listen", "127.0.0.1:0"}
		},
		"a token file that is a link to one that others read": func(r *raid) []string {
			r.write("tenon.yaml", "version: 1\n")
			r.write("token", "token-of-the-owner-0123456789")
			if err := errors.Join(os.Chmod("token", 0o644), os.Symlink("token", "link")); err != nil {
				r.t.Fatal(err)
			}
			return []string{"--token-file", "link", "--listen", "127.0.0.1:0"}
		},
		"an empty token file": func(r *raid) []string {
			r.write("tenon.yaml", "version: 1\n")
			r.write("token", "\n")
			return []string{"--token-file", "token", "--listen", "127.0.0.1:0"}
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			r := newRaidAlone(t)
			args := tt(r)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			var out, errs bytes.Buffer
			status := run(ctx, append([]string{"serve", "-c", "tenon.yaml"}, args...), stdio{strings.NewReader(""), &out, &errs})
			if ctx.Err() != nil || status == exitOK || strings.Contains(out.String()+errs.String(), "http://") && strings.Contains(errs.String(), "workbench") {
				t.Errorf("status %d: %s%s", status, out.String(), errs.String())
			}
		})
	}
}
