package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
)

// mockServer is the server of tools that mocks offer.
const mockServer = "mock"

// mocks answers the calls of one attempt.
type mocks struct {
	list   []Mock
	values []any // the decoded arguments; nil matches any arguments
	only   bool  // calls without a matching mock are not made

	mu       sync.Mutex
	used     []int
	unmocked []string // calls without a matching mock
}

func newMocks(c *Case, s *Suite) *mocks {
	m := &mocks{list: slices.Concat(c.Mocks, s.Mocks), only: c.Tools == ToolsMocked}
	m.values, m.used = make([]any, len(m.list)), make([]int, len(m.list))
	for i, mock := range m.list {
		if mock.Arguments != nil {
			m.values[i], _ = decode(mock.Arguments) // checked by Load
		}
	}
	return m
}

// find returns the mock for a call. If calls is true, it counts the call.
func (m *mocks) find(server, tool string, args json.RawMessage, calls bool) (Mock, bool) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	got, err := decode(args)
	if err != nil {
		return Mock{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, mock := range m.list {
		named := mock.Tool == tool && (mock.Server == "" || mock.Server == server) &&
			(!mock.offers() || server == mockServer)
		exhausted := mock.Times > 0 && m.used[i] >= mock.Times
		if !named || exhausted || m.values[i] != nil && fit("", m.values[i], got, false) != "" {
			continue
		}
		if calls {
			m.used[i]++
		}
		return mock, true
	}
	return Mock{}, false
}

// offers reports whether the mock itself offers its tool.
func (m Mock) offers() bool { return m.InputSchema != nil || m.Description != "" }

// toolset returns the tools that mocks offer, and false if there are none.
func (m *mocks) toolset() (tenon.Toolset, bool) {
	var tools offered
	for _, mock := range m.list {
		known := slices.ContainsFunc(tools, func(t tenon.Tool) bool { return t.Remote == mock.Tool })
		if mock.offers() && !known {
			yes := true
			tools = append(tools, tenon.Tool{
				Server: mockServer, Remote: mock.Tool, Description: mock.Description, Input: mock.InputSchema,
				Annotations: tenon.Annotations{ReadOnly: &yes},
			})
		}
	}
	return tools, len(tools) > 0
}

// offered is a toolset whose calls are answered by mocks.
type offered []tenon.Tool

// Tools implements [tenon.Toolset].
func (o offered) Tools(context.Context) ([]tenon.Tool, error) { return o, nil }

// Call implements [tenon.Toolset]. It is called only if no mock matches.
func (o offered) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	return nil, tenon.Errorf(tenon.CodeNotFound, "no mock matches %s", callText(mockServer, c))
}

// wrap wraps the toolset of a server.
func (m *mocks) wrap(server string, t tenon.Toolset) tenon.Toolset {
	if len(m.list) == 0 && !m.only {
		return t
	}
	return &mocked{Toolset: t, server: server, mocks: m}
}

type mocked struct {
	tenon.Toolset
	server string
	mocks  *mocks
}

// Call answers with the matching mock, or calls the server.
func (m *mocked) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	mock, ok := m.mocks.find(m.server, c.Tool, c.Arguments, true)
	switch {
	case !ok && m.mocks.only:
		text := callText(m.server, c)
		m.mocks.mu.Lock()
		m.mocks.unmocked = append(m.mocks.unmocked, text)
		m.mocks.mu.Unlock()
		return nil, tenon.Errorf(tenon.CodeNotFound, "no mock matches %s", text)
	case !ok:
		return m.Toolset.Call(ctx, c)
	}
	if mock.Delay > 0 {
		timer := time.NewTimer(mock.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
		}
	}
	if mock.Error != nil {
		return tenon.ErrorResult(*mock.Error), nil
	}
	r := &tenon.Result{Structured: mock.Structured}
	text := string(mock.Structured)
	if mock.Text != nil {
		text = *mock.Text
	}
	r.Content = []tenon.Content{tenon.Text(text)}
	return r, nil
}

func callText(server string, c tenon.Call) string {
	return fmt.Sprintf("%s.%s(%s)", server, c.Tool, shorten(string(c.Arguments), 200))
}

var (
	_ tenon.Toolset = offered{}
	_ tenon.Toolset = (*mocked)(nil)
)
