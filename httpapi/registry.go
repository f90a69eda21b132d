package httpapi

import (
	"net/http"
	"net/url"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers/registry"
)

// RegistryResults is the answer of GET /api/v1/config/registry: servers of the registry that registry.url names. Their
// texts come from the authors of the servers.
type RegistryResults struct {
	Registry string          `json:"registry,omitempty"` // host of the registry; absent if none is configured
	Items    []RegistryEntry `json:"items"`
	More     bool            `json:"more,omitempty"` // there are further matches
}

// RegistryEntry is a server of a registry.
type RegistryEntry struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
	Status      string `json:"status,omitempty"` // active, deprecated, deleted
	Website     string `json:"website,omitempty"`
	Repository  string `json:"repository,omitempty"`
	// Setups contains the ways to configure the server, the preferred one first. It is empty if the server cannot run
	// here.
	Setups []registry.Setup `json:"setups"`
	// Configured names the servers of the configuration that have this entry as their registry_name.
	Configured []string `json:"configured,omitempty"`
}

// searchRegistry searches only the configured registry. A request cannot choose the registry, because tenon sends it
// the search words and a token.
func (c *call) searchRegistry() error {
	limit, err := c.number("limit", 20, 1, 100)
	if err != nil {
		return err
	}
	cfg := c.h.Service().Info().Config
	out := RegistryResults{Items: []RegistryEntry{}}
	if cfg.Registry.URL == "" {
		return c.answer(http.StatusOK, out)
	}
	if u, err := url.Parse(cfg.Registry.URL); err == nil {
		out.Registry = u.Host
	}
	search := registry.Config{URL: cfg.Registry.URL, UserAgent: "tenon/" + c.h.Service().Info().Version}
	if search.Token, err = cfg.RegistryToken(c.ctx()); err != nil {
		return err
	}
	words := c.req.URL.Query().Get("search")
	if len(words) > maxWords {
		return tenon.Errorf(tenon.CodeInvalid, "search has more than %d bytes", maxWords)
	}
	list, more, err := registry.Search(c.ctx(), search, words, limit)
	if err != nil {
		return err
	}
	out.More = more
	for _, s := range list {
		e := RegistryEntry{Name: s.Name, Title: s.Title, Description: s.Description, Version: s.Version,
			Status: s.Status, Website: s.Website, Setups: s.Setups()}
		if s.Repository != nil {
			e.Repository = s.Repository.URL
		}
		if e.Setups == nil {
			e.Setups = []registry.Setup{}
		}
		for _, name := range cfg.AllServerNames() {
			if cfg.Servers[name].RegistryName == s.Name {
				e.Configured = append(e.Configured, name)
			}
		}
		out.Items = append(out.Items, e)
	}
	return c.answer(http.StatusOK, out)
}

// maxWords bounds the words of a search in a registry, in bytes.
const maxWords = 200
