package host

import (
	"context"
	"sync"
	"time"
)

const (
	// promptNamesFor is how long the names of prompts are kept.
	promptNamesFor = time.Minute
	// promptNamesTime bounds the time to ask the servers for them.
	promptNamesTime = 5 * time.Second
)

// promptNames keeps the names of the prompts of all servers, for rules that name tools which do not exist: a rule can
// be about a prompt, for clients of the gateway.
type promptNames struct {
	mu    sync.Mutex
	asked time.Time
	names map[string]bool
	all   bool // every server has answered
}

// mayBePrompt reports whether a server has a prompt of this name, or could not be asked for its prompts.
func (h *Host) mayBePrompt(ctx context.Context, name string) bool {
	p := &h.promptNames
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil || h.now().Sub(p.asked) > promptNamesFor {
		ctx, cancel := context.WithTimeout(ctx, promptNamesTime)
		defer cancel()
		list, problems, err := h.Servers().Context().Prompts(ctx)
		p.asked, p.names, p.all = h.now(), map[string]bool{}, err == nil && len(problems) == 0
		for _, prompt := range list {
			p.names[prompt.Name] = true
		}
	}
	return p.names[name] || !p.all
}
