package model

import (
	"slices"

	"github.com/tenonhq/tenon"
)

// Offer returns the request for a wire that cannot express a list of allowed tools. If the tool choice is a list, the
// new request offers only the tools of the list, and its choice is the mode of the list, auto or any. It also keeps the
// tools that tool results refer to, because the wire refuses a result that refers to an unknown tool. If the tool
// choice is not a list, Offer returns req.
func Offer(req *tenon.Request) *tenon.Request {
	c := tenon.ParseChoice(req.ToolChoice)
	if !c.IsList() {
		return req
	}
	return offer(req, c)
}

// offer returns the request with only the tools of a choice, and the choice's mode.
func offer(req *tenon.Request, c tenon.Choice) *tenon.Request {
	out := *req
	out.ToolChoice = c.Mode
	if !slices.Contains(c.Names, req.Finder) {
		out.Finder = ""
	}
	plain := len(req.Tools) - req.Deferred
	out.Tools = make([]tenon.Tool, 0, len(c.Names)+req.Deferred)
	for i := range req.Tools {
		if t := &req.Tools[i]; i >= plain || slices.Contains(c.Names, t.Name) {
			out.Tools = append(out.Tools, *t)
		}
	}
	if len(out.Tools) == 0 {
		out.ToolChoice = ""
	}
	return &out
}

// OfferOne returns the request for a server that accepts no name in a tool choice. If the choice names one tool, the
// new request offers only this tool, and the model must call a tool. Otherwise OfferOne returns req.
func OfferOne(req *tenon.Request) *tenon.Request {
	c := tenon.ParseChoice(req.ToolChoice)
	if len(c.Names) != 1 || c.IsList() {
		return req
	}
	return offer(req, c)
}
