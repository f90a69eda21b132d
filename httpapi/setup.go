package httpapi

import (
	_ "embed"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// Health is the answer of GET /healthz.
type Health struct {
	Status  string `json:"status"` // ok
	Version string `json:"version"`
}

// Ready is the answer of GET /readyz. The status is 200, or 503 if no run can start.
type Ready struct {
	Status string `json:"status"` // ok, or unavailable
	Store  string `json:"store"`  // ok, or error
	// Reason is the reason why no run can start. It does not contain the path of the store, because the route is
	// public.
	Reason string `json:"reason,omitempty"`
	// Servers counts the servers by state. A server that is down does not change Status.
	Servers map[servers.State]int `json:"servers"`
}

func (c *call) health() error {
	return c.answer(http.StatusOK, Health{"ok", c.h.Service().Info().Version})
}

func (c *call) ready() error {
	r := Ready{Status: "ok", Store: "ok", Servers: map[servers.State]int{}}
	list, err := c.h.Servers().List(c.ctx())
	if err != nil {
		return err
	}
	for _, st := range list {
		r.Servers[st.State]++
	}
	status := http.StatusOK
	if err := c.h.Service().Storage().State().Probe(c.ctx()); err != nil {
		c.h.Service().Info().Logger.Error("no run can start: the store does not work", "error", err)
		r.Status, r.Store, status = "unavailable", "error", http.StatusServiceUnavailable
		r.Reason = err.Error()
		if _, why, ok := strings.Cut(r.Reason, ": "); ok && strings.HasPrefix(r.Reason, "store ") {
			r.Reason = why
		}
	}
	return c.answer(status, r)
}

// Me is the answer of GET /api/v1/me: the caller, and the tenon that answers.
type Me struct {
	Principal tenon.Principal `json:"principal"`
	Owner     bool            `json:"owner"`
	Version   string          `json:"version"`
	Project   string          `json:"project,omitempty"`
	APIs      []string        `json:"apis"`
	// Proposals is the number of changes of the configuration that wait for the owner's agreement. It is 0 for other
	// callers.
	Proposals int `json:"proposals,omitempty"`
}

func (c *call) me() error {
	info := c.h.Service().Info()
	m := Me{Principal: c.caller.Principal, Owner: c.caller.Owner, Version: info.Version, Project: info.Config.Name,
		APIs: c.cfg.APIs}
	if c.cfg.Editor != nil && c.caller.Owner {
		list, err := c.cfg.Editor.Proposals(c.ctx())
		if err != nil {
			return err
		}
		m.Proposals = len(list)
	}
	return c.answer(http.StatusOK, m)
}

// AgentInfo is an entry of GET /api/v1/agents.
type AgentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Model       string `json:"model,omitempty"`
	Mode        string `json:"mode,omitempty"`
}

func (c *call) agents() error { return c.answer(http.StatusOK, items(c.agentList())) }

// agentList returns the configured agents, or the agent "default" if none is configured.
func (c *call) agentList() []AgentInfo {
	names := c.h.Service().Info().Config.AgentNames()
	if len(names) == 0 {
		names = []string{"default"}
	}
	var list []AgentInfo
	for _, name := range names {
		info := AgentInfo{Name: name}
		// An agent with an error in its configuration is listed with only its name. A question to it returns the error.
		if a, err := c.h.Service().Info().Config.Agent(name); err == nil {
			info.Description, info.Model, info.Mode = a.Description, a.Model, a.Mode
		}
		list = append(list, info)
	}
	return list
}

// ModelEntry is an entry of GET /api/v1/models. Rules is the provider whose rules about tool definitions apply to the
// model, as in GET /api/v1/lint. It is empty if there are no such rules.
type ModelEntry struct {
	host.ModelInfo
	Rules string `json:"rules,omitempty"`
}

// models lists the configured models and, with ?probe=true, the local model servers that answer.
func (c *call) models() error {
	probe, err := c.flag("probe")
	if err != nil {
		return err
	}
	list, err := c.h.Models().List(c.ctx(), probe)
	if err != nil {
		return err
	}
	entries := make([]ModelEntry, len(list))
	for i, m := range list {
		entries[i] = ModelEntry{m, host.Dialect(m.Provider)}
	}
	return c.answer(http.StatusOK, items(entries))
}

// TestModelRequest is the body of POST /api/v1/models/test.
type TestModelRequest struct {
	Name string `json:"name"`
}

// testModel sends a short question to a model, which costs a few tokens.
func (c *call) testModel() error {
	var r TestModelRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	if r.Name == "" {
		return tenon.Errorf(tenon.CodeInvalid, "name is missing: the model to test")
	}
	t, err := c.h.Models().Test(c.ctx(), r.Name)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, t)
}

// ConfigInfo is the answer of GET /api/v1/config: every value with its source. For a secret, the value is the source of
// the secret, never the secret itself.
type ConfigInfo struct {
	File   string         `json:"file,omitempty"`
	Values []config.Value `json:"values"`
}

func (c *call) config() error {
	cfg := c.h.Service().Info().Config
	values, err := cfg.Show(c.req.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	if values == nil {
		values = []config.Value{}
	}
	return c.answer(http.StatusOK, ConfigInfo{cfg.File, values})
}

// stats sends usage counts, grouped by the last part of the path. The owner sees the usage of all principals, others
// only their own.
func (c *call) stats() error {
	per, err := c.oneOf("per", host.PerHour, host.PerDay)
	if err != nil {
		return err
	}
	q := host.StatsQuery{By: c.req.PathValue("by"), Per: per, Principal: c.caller.Principal,
		Behind: c.behind}
	if c.caller.Owner {
		q.Principal = ""
	}
	if !slices.Contains(host.StatsBy(), q.By) {
		return tenon.Errorf(tenon.CodeNotFound, "nothing is counted by '%s'; values: %s", q.By,
			strings.Join(host.StatsBy(), ", "))
	}
	if q.Since, err = config.ParseSince(c.req.URL.Query().Get("since"), time.Now()); err != nil {
		return err
	}
	list, err := c.h.Stats(c.ctx(), q)
	if err != nil {
		return overloaded(err)
	}
	return c.answer(http.StatusOK, items(list))
}

//go:embed openapi.json
var openapi []byte

func (c *call) openapi() error {
	c.sendBytes(http.StatusOK, "application/json", openapi)
	return nil
}
