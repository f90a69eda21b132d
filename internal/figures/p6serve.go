package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/internal/sse"
)

// modelChild is the child that runs a model over HTTP. Its argument is the duration of a response.
const modelChild = "model"

// startModel starts a model with the given response time and returns its URL.
func (s *session) startModel(answer time.Duration) (url string, stop func() error, err error) {
	url, stop, err = bench.StartHTTP(s.exe, "child", modelChild, answer.String())
	return strings.TrimSuffix(url, "/mcp") + "/v1", stop, err
}

// serveModel is the process of startModel. It implements OpenAI's Chat Completions and streams two chunks
// after the response time.
func serveModel(answer string) error {
	d, err := time.ParseDuration(answer)
	if err != nil {
		return err
	}
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1769088720,"model":"mock",` +
		`"choices":[{"index":0,"delta":`
	answered := []byte(chunk + `{"role":"assistant","content":"` + p6FirstToken +
		`"},"finish_reason":null}]}` + "\n\n" +
		chunk + `{"content":"` + strings.TrimPrefix(p6Answer, p6FirstToken) + `"},"finish_reason":null}]}` + "\n\n" +
		chunk + `{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1769088720,"model":"mock","choices":[],` +
		`"usage":{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17}}` + "\n\ndata: [DONE]\n\n")
	return bench.ServeHTTP(os.Stdin, os.Stdout, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a client that aborts gets no response
		if d > 0 {
			select {
			case <-time.After(d):
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(answered)
	}))
}

// serveProcess is a running tenon serve.
type serveProcess struct {
	url, token string
	cmd        *exec.Cmd
	log        *bytes.Buffer
}

// served returns the configuration of tenon serve: a model for its agent, and servers whose tools the agent
// does not use.
func served(model string, unused map[string]any) map[string]any {
	return map[string]any{
		"models": map[string]any{"mock": map[string]any{"provider": "openai-compatible", "model": "mock",
			"base_url": model}},
		"agents": map[string]any{"default": map[string]any{"model": "mock",
			"tools": map[string]any{"enabled": len(unused) == 0}}},
		"servers": unused,
		"serve":   map[string]any{"listen": "127.0.0.1:0"},
	}
}

// startServe starts tenon serve in a folder.
func (s *session) startServe(tenon, dir string, served map[string]any) (*serveProcess, error) {
	const token = "figures-figures-figures"
	project, err := json.Marshal(served)
	file := filepath.Join(dir, "tenon.yaml")
	err = errors.Join(err, os.WriteFile(file, project, 0o600),
		os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600))
	if err != nil {
		return nil, err
	}
	p := &serveProcess{token: token, log: &bytes.Buffer{}}
	p.cmd = exec.Command(tenon, "serve", "-c", file, "--token-file", filepath.Join(dir, "token"), "--log-level", "warn")
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 600 {
		if b, err := os.ReadFile(filepath.Join(dir, ".tenon", "serve.url")); err == nil && len(b) > 0 {
			p.url = strings.TrimSpace(string(b))
			return p, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, errors.Join(errors.New("tenon serve did not start to listen"), p.stop())
}

// stop ends the process and returns its log in an error.
func (p *serveProcess) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("tenon serve: %w: %.2000s", err, p.log)
	}
	return nil
}

// kill kills the process.
func (p *serveProcess) kill() error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // returns an error because the process was killed
	return err
}

// cpu returns the CPU time of the process so far.
func (p *serveProcess) cpu() (time.Duration, error) { return clockOf(p.cmd.Process.Pid) }

// resident returns the resident memory of the process in bytes.
func (p *serveProcess) resident() (int64, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			var kb int64
			_, err := fmt.Sscan(rest, &kb)
			return kb * 1024, err
		}
	}
	return 0, errors.New("the resident memory of a process is not available on this system")
}

// asker sends JSON requests with a bearer token, to a model's API or to tenon's.
type asker struct {
	client *http.Client
	token  string
	ctx    context.Context
}

// send sends a request and returns the response. A status other than 2xx is an error.
func (c *asker) send(method, url string, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(c.ctx, method, url, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.client.Do(req)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1000))
	return nil, errors.Join(fmt.Errorf("%s %s: %s: %s", method, url, res.Status, b), err)
}

// whole sends a request and checks that the response contains a text.
func (c *asker) whole(url string, body any, want string) error {
	res, err := c.send(http.MethodPost, url, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && !bytes.Contains(b, []byte(want)) {
		err = fmt.Errorf("%s answered %.300q", url, b)
	}
	return err
}

// model sends a request to the model itself.
func (c *asker) model(url string) error {
	return c.whole(url+"/chat/completions", map[string]any{"model": "mock", "stream": true,
		"messages": []any{map[string]string{"role": "user", "content": p6Question}}}, "[DONE]")
}

// chat sends a request to POST /chat.
func (c *asker) chat(url string) error {
	return c.whole(url+"/chat", map[string]string{"message": p6Question}, `"`+p6Answer+`"`)
}

// native starts a run and follows its events to the end.
func (c *asker) native(url string) error {
	run, err := c.start(url)
	if err != nil {
		return err
	}
	res, err := c.send(http.MethodGet, url+"/api/v1/runs/"+run+"/events", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	r := sse.NewReader(res.Body, 1<<20)
	defer r.Close()
	answered, done := false, false
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		answered = answered || bytes.Contains(e.Data, []byte(p6Answer))
		done = done || bytes.Contains(e.Data, []byte(`"kind":"done"`))
	}
	if !answered || !done {
		return fmt.Errorf("run %s: the stream ended, with answer: %t, with end: %t", run, answered, done)
	}
	return nil
}

// start starts a run and returns its id.
func (c *asker) start(url string) (string, error) {
	res, err := c.send(http.MethodPost, url+"/api/v1/runs", map[string]string{"question": p6Question})
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var started struct{ Run struct{ ID string } }
	b, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(b, &started)
	}
	return started.Run.ID, err
}
