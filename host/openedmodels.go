package host

import (
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/executor"
)

// get opens a model, or returns the open one.
func (m *models) get(ctx context.Context, name string) (executor.Model, error) {
	return m.opened(ctx, openKey{model: name}, nil)
}

// forAgent opens a model for an agent and adds the agent's tools of the provider.
func (m *models) forAgent(ctx context.Context, name, agent string) (executor.Model, error) {
	if len(m.h.config.Agents[agent].ProviderTools) == 0 {
		return m.get(ctx, name)
	}
	key := openKey{name, agent}
	m.mu.Lock()
	o, ok := m.open[key]
	m.mu.Unlock()
	if ok {
		return o, nil
	}
	own, secrets, err := m.h.config.ProviderTools(ctx, agent)
	if err != nil {
		return executor.Model{}, err
	}
	for _, v := range secrets {
		m.h.redactor.Add(v)
	}
	return m.opened(ctx, key, own)
}

// opened returns the open model of a key, or opens it with the given tools of the provider. To open a model can take
// long, because files, secrets and programs are read. Only calls for the same model wait for it.
func (m *models) opened(ctx context.Context, key openKey, own json.RawMessage) (executor.Model, error) {
	for {
		o, wait, found := m.look(key)
		if found {
			return o, nil
		}
		if wait == nil {
			return m.openNow(ctx, key, own)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return executor.Model{}, tenon.Errorf(tenon.CodeCancelled, "model %s: %w", key.model, context.Cause(ctx))
		}
	}
}

// look returns the open model of a key. If there is none, wait ends when another call has tried to open it. It is nil
// if the caller has to open it.
func (m *models) look(key openKey) (o executor.Model, wait <-chan struct{}, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, ok := m.open[key]; ok {
		return o, nil, true
	}
	if o, ok := m.open[openKey{model: key.model}]; ok && m.isOwn(key.model) {
		o.Notes = []string{"the tools of the provider that agent '" + key.agent + "' has are not offered: the " +
			"program provides the model"}
		return o, nil, true
	}
	if under := m.making[key]; under != nil {
		return o, under, false
	}
	m.making[key] = make(chan struct{})
	return o, nil, false
}

// openNow opens a model for which look returned no wait.
func (m *models) openNow(ctx context.Context, key openKey, own json.RawMessage) (o executor.Model, err error) {
	opened := false
	defer func() { // also after a panic
		m.mu.Lock()
		defer m.mu.Unlock()
		if opened {
			m.open[key] = o
		}
		close(m.making[key])
		delete(m.making, key)
	}()
	o, err = m.make(ctx, key.model, own)
	if opened = err == nil; !opened {
		return executor.Model{}, err
	}
	return o, nil
}
