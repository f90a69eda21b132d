package cli

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// withServe calls do, which waits for the process that works on a run. If this process is a tenon serve that is
// stopped or stuck, withServe cancels do and returns an error that names the process.
func withServe(ctx context.Context, h desk, do func(context.Context) error) error {
	here, ok := h.(*host.Host)
	if !ok {
		return do(ctx) // the client checks this itself
	}
	client := httpapi.NewClient(here.Service().Info().Socket)
	defer client.Close()
	watched, stop := client.Watch(ctx)
	defer stop()
	err := do(watched)
	if stuck := httpapi.Stuck(watched); err != nil && stuck != nil {
		return tenon.Errorf(tenon.CodeTimeout, "%w; it will find what you sent then", stuck)
	}
	return err
}
