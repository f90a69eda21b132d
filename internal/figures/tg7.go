package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/model/react"
)

// Scale of TG-7.
const (
	promptTools     = 50
	promptArguments = 5
)

// measureTG7 compares the cost of a prompt of the text loop with copying its bytes through text/template. It
// measures the prompt of a turn, and the first prompt of a tool snapshot, whose schemas must be parsed.
func measureTG7(s *session) error {
	var ratio, first, turn []float64
	for range s.rounds {
		p, err := react.New(react.Config{})
		if err != nil {
			return err
		}
		text, err := promptRound(p, promptQuestion(manyArguments()))
		if err != nil {
			return err
		}
		if n := strings.Count(text, "  - Required: "); n != promptTools*promptArguments {
			return fmt.Errorf("the prompt has %d arguments", n)
		}
		copies, err := template.New("").Parse("{{.}}")
		if err != nil {
			return err
		}
		const times = 2000
		tools := promptQuestion(manyArguments())
		if _, err := promptRound(p, tools); err != nil {
			return err
		}
		start := bench.Self().CPU
		for range times {
			var b strings.Builder
			if err := copies.Execute(&b, text); err != nil {
				return err
			}
		}
		middle := bench.Self().CPU
		for range times {
			if _, err := promptRound(p, tools); err != nil {
				return err
			}
		}
		end := bench.Self().CPU
		const cold = 50
		for range cold {
			if _, err := promptRound(p, promptQuestion(manyArguments())); err != nil {
				return err
			}
		}
		last := bench.Self().CPU
		if middle == start {
			return errors.New("the CPU time of a process cannot be read on this system")
		}
		ratio = append(ratio, float64(end-middle)/float64(middle-start))
		turn = append(turn, float64(end-middle)/1e3/times)
		first = append(first, float64(last-end)/1e3/cold)
	}
	s.add("TG-7", "a react prompt of 50 tools with 5 arguments each against copying its bytes through text/template",
		"ratio", ratio)
	s.add("TG-7.turn", "CPU of such a prompt", "µs", turn)
	s.add("TG-7.first", "CPU of the first one, which reads the schemas of the tools", "µs", first)
	return nil
}

func promptRound(p *react.Prompt, req *tenon.Request) (string, error) {
	out, err := p.Request(req)
	if err != nil {
		return "", err
	}
	return out.Messages[0].Text(), nil
}

func promptQuestion(tools []tenon.Tool) *tenon.Request {
	return &tenon.Request{Tools: tools,
		Messages: []*tenon.Message{tenon.UserMessage("What is the balance of account 1?")}}
}

// manyArguments returns new tools with all their arguments.
func manyArguments() []tenon.Tool {
	tools := make([]tenon.Tool, promptTools)
	var properties, required []string
	for i := range promptArguments {
		name := strconv.Quote("argument_" + strconv.Itoa(i))
		properties = append(properties, name+
			`:{"type":"string","description":"One of the things that the tool has to know before it can begin"}`)
		required = append(required, name)
	}
	schema := []byte(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` +
		strings.Join(required, ",") + `]}`)
	for i := range tools {
		tools[i] = tenon.Tool{Name: "tool_" + strconv.Itoa(i),
			Description: "Does one of many things that a tool may do, with what it is given.", Input: schema}
	}
	return tools
}
