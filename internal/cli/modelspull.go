package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/model"
)

// listOffered prints the models that a provider offers.
func (a *app) listOffered(ctx context.Context, provider string) (err error) {
	h, err := a.open(ctx, opening{connect: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	list, err := h.Models().Offered(ctx, provider)
	if err != nil {
		return err
	}
	return printList(a, list, []string{"model", "title", "owner", "context"}, func(m model.Listed) []string {
		size := ""
		if m.Context > 0 {
			size = strconv.Itoa(m.Context)
		}
		return []string{m.ID, m.Title, m.Owner, size}
	})
}

func newModelsPull(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pull NAME",
		Short: "Download a model to a local Ollama server",
		Long: "Has an Ollama server download a model, and shows the progress on stderr. NAME is an entry of models,\n" +
			"ollama/MODEL, or the name of a model of Ollama. A download that is interrupted continues with the\n" +
			"same command.",
		Example: "  tenon models pull llama3.2\n  tenon models pull local",
		Args:    args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.pullModel(cmd.Context(), names[0])
		},
	}
}

func (a *app) pullModel(ctx context.Context, name string) (err error) {
	h, err := a.open(ctx, opening{connect: true})
	if err != nil {
		return err
	}
	defer closing(h, &err)
	shown := progressLines{}
	err = h.Models().Pull(ctx, name, func(p model.Pulled) {
		if line, ok := shown.next(p); ok {
			a.note("%s", line)
		}
	})
	if err != nil || !a.isJSON() {
		return err
	}
	return a.printJSON(map[string]string{"name": name, "status": "success"})
}

// progressLines decides which reports of a download are printed: each new status, and each tenth of a file.
type progressLines struct {
	status string
	tenth  int64
}

func (l *progressLines) next(p model.Pulled) (line string, print bool) {
	tenth := int64(0)
	if p.Total > 0 {
		tenth = min(max(p.Done, 0), p.Total) / max(p.Total/10, 1)
	}
	if p.Status == l.status && tenth <= l.tenth {
		return "", false
	}
	l.status, l.tenth = p.Status, tenth
	line = p.Status
	if p.Total > 0 {
		line += "  " + strconv.FormatInt(min(tenth, 10)*10, 10) + "% of " + strconv.FormatInt(p.Total>>20, 10) + " MiB"
	}
	return line, true
}
