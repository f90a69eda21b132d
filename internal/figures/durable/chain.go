package durable

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Chain measures one run of sequential empty steps with only the engine. It returns one duration for each
// round; each round is a separate run on the same store. Dir must be empty.
func Chain(ctx context.Context, dir string, steps, rounds int) (took []time.Duration, err error) {
	p, err := open(ctx, dir, do)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for i := range rounds {
		run := fmt.Sprintf("run_chain_%03d", i)
		begun := time.Now()
		if err := p.Start(ctx, script{Steps: steps}.spec(run)); err != nil {
			return nil, err
		}
		for _, err := range p.Events(ctx, run, 0) {
			if err != nil {
				return nil, err
			}
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}
