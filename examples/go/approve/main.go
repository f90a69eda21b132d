// Approve decides in the program which tool calls of an agent run.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	h, err := host.Open(ctx, host.Config{
		Model:     "script:answers.yaml", // in place of a model
		Functions: []host.Function{host.NewFunction("pay", "Pays an amount to somebody", pay)},
		Approve:   approve,
	})
	if err != nil {
		return err
	}
	defer h.Close()

	answer, err := h.Ask(ctx, "Pay Ann 20, Bob 5000 and the shop 300.")
	if err != nil {
		return err
	}
	for _, c := range answer.Calls {
		fmt.Println(c.Verdict, "by", c.By+":", string(c.Args))
	}
	fmt.Println(answer.Text)
	return nil
}

type payment struct {
	To     string `json:"to"`
	Amount int    `json:"amount"`
}

func pay(_ context.Context, p payment) (string, error) {
	fmt.Printf("paid %d to %s\n", p.Amount, p.To)
	return "paid", nil
}

// approve is called for each call that a rule does not decide. Without it, a run waits in the store until somebody
// decides: with h.Approvals().Decide, over HTTP, or with tenon approvals.
func approve(_ context.Context, a host.Approval) (host.Ruling, error) {
	var p payment
	if err := json.Unmarshal(a.Arguments, &p); err != nil {
		return host.Ruling{}, err // the run keeps waiting
	}
	switch {
	case p.Amount <= 100:
		return host.Ruling{Verdict: tenon.Allow, By: "small amounts"}, nil
	case p.To == "the shop": // with other arguments
		less := json.RawMessage(`{"to":"the shop","amount":250}`)
		return host.Ruling{Verdict: tenon.Allow, By: "the budget", Arguments: less}, nil
	}
	return host.Ruling{Verdict: tenon.Deny, By: "the limit", Reason: "at most 100 for a person"}, nil
}
