package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tenonhq/tenon"
)

// Pulled is the progress of a download.
type Pulled struct {
	Status string // the server's words, such as "pulling manifest" or "success"
	Total  int64  // bytes of the current file; 0 if unknown
	Done   int64  // downloaded bytes of the current file
}

// OllamaBase returns the address of an Ollama server without the path of its API in OpenAI's format. The table of
// providers and most configurations contain the address with this path.
func OllamaBase(base string) string { return strings.TrimSuffix(base, "/v1") }

// maxPullLine bounds a line of progress.
const maxPullLine = 64 << 10

// Pull makes an Ollama server download the model of a config, and reports the progress. The config's timeout bounds the
// silence between two reports. Errors have code config (another provider), or are errors of models.
func Pull(ctx context.Context, cfg Config, env Env, progress func(Pulled)) error {
	if cfg.Provider != providerOllama {
		return tenon.Errorf(tenon.CodeConfig, "provider %s cannot download models; only ollama can", cfg.Provider)
	}
	c, err := NewClient(cfg, cfg.Wire(), env)
	if err != nil {
		return err
	}
	if f := c.pull(ctx, progress); f != nil {
		return c.fail(f, 1)
	}
	return nil
}

func (c *Client) pull(ctx context.Context, progress func(Pulled)) *Failure {
	body, err := json.Marshal(map[string]any{"model": c.cfg.Model, "stream": true})
	if err != nil {
		return Broken("the request cannot be written")
	}
	w := newWatch(ctx, c.cfg.Timeout)
	defer w.stop()
	key := func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }
	resp, f := c.send(ctx, w, http.MethodPost, OllamaBase(c.cfg.BaseURL)+"/api/pull", body, Exchange{Key: key})
	if f != nil {
		return f
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(&pulse{body: resp.Body, watch: w})
	lines.Buffer(nil, maxPullLine)
	last := ""
	for lines.Scan() {
		var line struct {
			Status    string `json:"status"`
			Total     int64  `json:"total"`
			Completed int64  `json:"completed"`
			Error     string `json:"error"`
		}
		switch err := json.Unmarshal(lines.Bytes(), &line); {
		case len(bytes.TrimSpace(lines.Bytes())) == 0:
			continue
		case err != nil:
			return NotJSON(lines.Bytes())
		case line.Error != "":
			return &Failure{Code: tenon.CodeModel, Message: Visible(line.Error), Remedied: true}
		}
		last = line.Status
		progress(Pulled{Status: Visible(line.Status), Total: line.Total, Done: line.Completed})
	}
	switch err := lines.Err(); {
	case ctx.Err() != nil:
		return ended(ctx.Err())
	case w.expired():
		return &Failure{Code: tenon.CodeTimeout, Err: errIdle,
			Message: fmt.Sprintf("the download stopped: no progress for %s", c.cfg.Timeout)}
	case err != nil:
		return &Failure{Code: tenon.CodeProtocol, Message: "the connection broke during the download: " +
			Visible(err.Error())}
	case last != "success":
		return CutOff("success")
	}
	return nil
}

// pulse restarts the watch with each read. It does not limit the size of the body.
type pulse struct {
	body  io.Reader
	watch *watch
}

func (p *pulse) Read(b []byte) (int, error) {
	p.watch.reset(p.watch.idle)
	return p.body.Read(b)
}
