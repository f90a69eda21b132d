// Package registry searches a registry of MCP servers: the official one, or any service with the same API
// (GET /v0.1/servers).
//
// It is not part of the flow of a run. `tenon servers search` and the workbench query the registry, and a person
// adds a result to `servers`. The package starts no server and calls none. The configuration names the registry;
// there is no default.
//
// Responses come from an untrusted party. The size of a page, the number of pages and the time are bounded. A
// repeated cursor ends the search. Redirects are followed only within the same origin. Texts are not escaped;
// callers must escape them before showing them.
package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// Limits of a search.
const (
	maxPage   = 4 << 20 // bytes
	maxPages  = 50
	pageSize  = 100
	patience  = 20 * time.Second // for one page
	maxFollow = 3
)

// Config configures a search.
type Config struct {
	// URL is the address of the registry, with or without /v0.1 or /v0.1/servers at the end.
	URL string
	// Token is sent as Authorization: Bearer, unless it is empty.
	Token tenon.Secret
	// UserAgent is the User-Agent header.
	UserAgent string
}

// Server is a registry's entry of one server (server.json, 2025-12-11), reduced to the fields needed to run
// it.
type Server struct {
	Name        string    `json:"name"`
	Title       string    `json:"title,omitempty"`
	Description string    `json:"description"`
	Version     string    `json:"version"`
	Status      string    `json:"status,omitempty"` // active, deprecated, deleted
	Website     string    `json:"websiteUrl,omitempty"`
	Repository  *Place    `json:"repository,omitempty"`
	Packages    []Package `json:"packages,omitempty"`
	Remotes     []Remote  `json:"remotes,omitempty"`
	// Add is the command line that adds the server. It is nil if the server cannot run here.
	Add []string `json:"add,omitempty"`
	// Configured names the configured servers that match this entry. Search leaves it empty.
	Configured []string `json:"configured,omitempty"`
}

// Place is the location of a repository.
type Place struct {
	URL string `json:"url"`
}

// Package is one way to run a server on this machine.
type Package struct {
	Type             string  `json:"registryType"` // npm, pypi, oci, nuget, mcpb, cargo
	Identifier       string  `json:"identifier"`
	Version          string  `json:"version,omitempty"`
	RuntimeHint      string  `json:"runtimeHint,omitempty"`
	RuntimeArguments []Input `json:"runtimeArguments,omitempty"`
	PackageArguments []Input `json:"packageArguments,omitempty"`
	Environment      []Input `json:"environmentVariables,omitempty"`
	Transport        Remote  `json:"transport"`
}

// Remote is the address of a remote server.
type Remote struct {
	Type    string  `json:"type"` // stdio, streamable-http, sse
	URL     string  `json:"url,omitempty"`
	Headers []Input `json:"headers,omitempty"`
}

// Input is an argument, a variable or a header.
type Input struct {
	Type       string `json:"type,omitempty"` // positional, named
	Name       string `json:"name,omitempty"`
	Value      string `json:"value,omitempty"`
	ValueHint  string `json:"valueHint,omitempty"`
	Default    string `json:"default,omitempty"`
	IsRequired bool   `json:"isRequired,omitempty"`
	IsSecret   bool   `json:"isSecret,omitempty"`
}

// page is one response. Older registries put a server's keys next to _meta.
type page struct {
	Servers []struct {
		Server
		Inner *Server `json:"server"`
		Meta  struct {
			Official struct {
				Status string `json:"status"`
			} `json:"io.modelcontextprotocol.registry/official"`
		} `json:"_meta"`
	} `json:"servers"`
	Metadata struct {
		Next  string `json:"nextCursor"`
		Older string `json:"next_cursor"`
	} `json:"metadata"`
}

// Search returns the servers whose name contains the text, in the registry's order, at most limit of them.
// More reports that there are further matches. Errors: config (no or an invalid address), auth_required,
// unreachable, timeout, protocol (the response does not follow the API), too_large, rate_limited.
func Search(ctx context.Context, cfg Config, query string, limit int) (list []Server, more bool, err error) {
	base, err := endpoint(cfg.URL)
	if err != nil {
		return nil, false, err
	}
	client := &http.Client{CheckRedirect: sameOrigin}
	defer client.CloseIdleConnections()
	seen := map[string]bool{}
	for cursor := ""; ; {
		p, err := get(ctx, client, cfg, base, query, cursor, min(limit-len(list), pageSize))
		if err != nil {
			return nil, false, err
		}
		for _, e := range p.Servers {
			s := e.Server
			if e.Inner != nil {
				s = *e.Inner
			}
			s.Status = cmp.Or(e.Meta.Official.Status, s.Status)
			if s.Name == "" {
				continue
			}
			if len(list) == limit {
				return list, true, nil
			}
			s.Add = command(s)
			list = append(list, s)
		}
		cursor = cmp.Or(p.Metadata.Next, p.Metadata.Older)
		switch {
		case cursor == "":
			return list, false, nil
		case len(list) >= limit || seen[cursor] || len(seen) == maxPages:
			return list, true, nil
		}
		seen[cursor] = true
	}
}

// endpoint returns the URL of the server list of a registry.
func endpoint(address string) (*url.URL, error) {
	if address == "" {
		return nil, tenon.Errorf(tenon.CodeConfig,
			"no registry is configured: set registry.url, or pass --registry URL")
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, tenon.Errorf(tenon.CodeConfig, "'%s' is not the URL of a registry", address)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	switch last := path.Base(u.Path); {
	case last == "servers":
	case len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9':
		u.Path += "/servers"
	default:
		u.Path += "/v0.1/servers"
	}
	return u, nil
}

func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxFollow || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("it redirects to %s", req.URL.Redacted())
	}
	return nil
}

func get(ctx context.Context, client *http.Client, cfg Config, base *url.URL,
	query, cursor string, limit int) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	u := *base
	q := u.Query()
	params := map[string]string{"search": query, "cursor": cursor, "limit": strconv.Itoa(limit), "version": "latest"}
	for k, v := range params {
		if v != "" {
			q.Set(k, v)
		}
	}
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "the registry's URL: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if cfg.UserAgent != "" {
		req.Header.Set("User-Agent", cfg.UserAgent)
	}
	if !cfg.Token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+cfg.Token.Reveal())
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, failure(ctx, base, err)
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return nil, tenon.Errorf(tenon.CodeAuth,
			"the registry at %s requires credentials (HTTP %d); set registry.secret", base.Host, resp.StatusCode)
	case resp.StatusCode == http.StatusTooManyRequests:
		return nil, tenon.Errorf(tenon.CodeRateLimited,
			"the registry at %s limits the rate of requests; try again later",
			base.Host)
	case resp.StatusCode >= 500:
		return nil, tenon.Errorf(tenon.CodeUnreachable,
			"the registry at %s reports an internal error (HTTP %d); try again later", base.Host, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return nil, tenon.Errorf(tenon.CodeProtocol,
			"%s answers with HTTP %d; check that registry.url is the address of a registry of MCP servers",
			base.Redacted(), resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	switch {
	case err != nil:
		return nil, failure(ctx, base, err)
	case len(body) > maxPage:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "a page of the registry at %s exceeds %d MiB", base.Host,
			maxPage>>20)
	}
	p := new(page)
	if err := json.Unmarshal(body, p); err != nil || p.Servers == nil && !strings.Contains(string(body), `"servers"`) {
		return nil, tenon.Errorf(tenon.CodeProtocol,
			"%s did not return a list of MCP servers; check registry.url", base.Redacted())
	}
	return p, nil
}

// failure returns the error of a failed request.
func failure(ctx context.Context, base *url.URL, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return tenon.Errorf(tenon.CodeTimeout, "the registry at %s did not answer within %s", base.Host, patience)
	}
	if ctx.Err() != nil {
		return tenon.Errorf(tenon.CodeCancelled, "the search was cancelled")
	}
	return tenon.Errorf(tenon.CodeUnreachable,
		"the registry at %s cannot be reached: %w; check the network and registry.url", base.Host, err)
}
