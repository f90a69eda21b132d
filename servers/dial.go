package servers

import (
	"context"
	"errors"
)

// dialed is a connection that was made, and what is known about it.
type dialed struct {
	conn     connection
	protocol string
	identity string
	phases   []Phase
}

func (s *Server) dial(ctx context.Context) (*dialed, error) {
	return nil, errors.New("waiting for package mcp")
}
