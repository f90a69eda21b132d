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

// Ready is the answer of GET /readyz: 200, or 503 where runs cannot begin.
type Ready struct {
	Status string `json:"status"` // ok, or unavailable
	Store  string `json:"store"`  // ok, or error
	// Servers counts them by state; one that is down makes nothing unavailable.
	Servers map[servers.State]int `json:"servers"`
}

func (c *call) health() error { return c.answer(http.StatusOK, Health{"ok", c.h.Version()}) }

func (c *call) ready() error {
	r := Ready{Status: "ok", Store: "ok", Servers: map[servers.State]int{}}
	for _, st := range c.h.Statuses() {
		r.Servers[st.State]++
	}
	status := http.StatusOK
	if _, err := c.h.Sessions(c.ctx(), 1); err != nil {
		c.h.Logger().Error("the store cannot be read", "error", err)
		r.Status, r.Store, status = "unavailable", "error", http.StatusServiceUnavailable
	}
	return c.answer(status, r)
}

// Me is the answer of GET /api/v1/me: who asks, and whom.
type Me struct {
	Principal tenon.Principal `json:"principal"`
	Owner     bool            `json:"owner"`
	Version   string          `json:"version"`
	Project   string          `json:"project,omitempty"`
	APIs      []string        `json:"apis"`
}

func (c *call) me() error {
	return c.answer(http.StatusOK, Me{c.caller.Principal, c.caller.Owner, c.h.Version(), c.h.Config().Name, c.cfg.APIs})
}

// AgentInfo is an entry of agents.
type AgentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Model       string `json:"model,omitempty"`
	Mode        string `json:"mode,omitempty"`
}

func (c *call) agents() error { return c.answer(http.StatusOK, items(c.agentList())) }

// agentList is every agent that a question can go to; where none is configured there is
// the default one.
func (c *call) agentList() []AgentInfo {
	names := c.h.Config().AgentNames()
	if len(names) == 0 {
		names = []string{"default"}
	}
	var list []AgentInfo
	for _, name := range names {
		info := AgentInfo{Name: name}
		if a, err := c.h.Config().Agent(name); err == nil { // whoever asks it is told what is wrong
			info.Description, info.Model, info.Mode = a.Description, a.Model, a.Mode
		}
		list = append(list, info)
	}
	return list
}

// ModelEntry is a model, and which provider's rules hold for the tools that it is told of; see
// GET /api/v1/lint. Rules is empty where it takes everything.
type ModelEntry struct {
	host.ModelInfo
	Rules string `json:"rules,omitempty"`
}

// models lists the configured models and, with ?probe=true, local ones that answer.
func (c *call) models() error {
	probe, err := c.flag("probe")
	if err != nil {
		return err
	}
	list, err := c.h.Models(c.ctx(), probe)
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

// testModel asks a model a small question; it costs a few tokens.
func (c *call) testModel() error {
	var r TestModelRequest
	if err := c.decode(&r, false); err != nil {
		return err
	}
	if r.Name == "" {
		return tenon.Errorf(tenon.CodeInvalid, "name is missing: the model to test")
	}
	t, err := c.h.TestModel(c.ctx(), r.Name)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, t)
}

// ConfigInfo is the answer of GET /api/v1/config: every value, secrets by where they are
// read and never themselves, and where it was said.
type ConfigInfo struct {
	File   string         `json:"file,omitempty"`
	Values []config.Value `json:"values"`
}

func (c *call) config() error {
	cfg := c.h.Config()
	values, err := cfg.Show(c.req.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	if values == nil {
		values = []config.Value{}
	}
	return c.answer(http.StatusOK, ConfigInfo{cfg.File, values})
}

// stats counts by what the path names. The owner sees everybody's, others their own.
func (c *call) stats() error {
	per, err := c.oneOf("per", host.PerHour, host.PerDay)
	if err != nil {
		return err
	}
	q := host.StatsQuery{By: c.req.PathValue("by"), Per: per, Principal: c.caller.Principal}
	if c.caller.Owner {
		q.Principal = ""
	}
	if !slices.Contains(host.StatsBy(), q.By) {
		return tenon.Errorf(tenon.CodeNotFound, "nothing is counted by '%s'; values: %s", q.By, strings.Join(host.StatsBy(), ", "))
	}
	if q.Since, err = config.ParseSince(c.req.URL.Query().Get("since"), time.Now()); err != nil {
		return err
	}
	list, err := c.h.Stats(c.ctx(), q)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, items(list))
}

//go:embed openapi.json
var openapi []byte

func (c *call) openapi() error {
	c.sendBytes(http.StatusOK, "application/json", openapi)
	return nil
}
