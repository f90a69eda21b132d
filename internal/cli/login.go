package cli

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

func newServersLogin(a *app) *cobra.Command {
	var noBrowser bool
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Sign in to a server that requires OAuth",
		Long: "Gets the sign-in page from the server, prints its address, opens it in the browser, and waits up to\n" +
			"ten minutes for the browser to call a port of this machine. The tokens are stored encrypted in your\n" +
			"state folder. Their key is in the system's keyring, if there is one. All your tenon processes use and\n" +
			"renew the tokens. From another machine, forward the port first: set servers.NAME.auth.callback_port,\n" +
			"then run ssh -L PORT:127.0.0.1:PORT.",
		Example: "  tenon servers login portal\n  tenon servers login portal --no-browser",
		Args:    args(1, 1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, s, err := a.account(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer closing(h, &err)
			issuer, err := s.Login(cmd.Context(), func(address string) { a.visit(args[0], address, !noBrowser) })
			if err != nil {
				return err
			}
			tools, err := s.List(cmd.Context())
			if err != nil {
				return fmt.Errorf("you are signed in at %s, but: %w", issuer, err)
			}
			if a.isJSON() {
				return a.printJSON(map[string]any{"server": args[0], "issuer": issuer, "tools": len(tools)})
			}
			return a.write(fmt.Appendf(nil, "%s signed in to %s at %s (%s)\n", a.outStyle(green, "✓"),
				safeLine(args[0]), safeLine(issuer), plural(len(tools), "tool")))
		},
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the address")
	return cmd
}

func newServersLogout(a *app) *cobra.Command {
	var who string
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Sign out of a server",
		Long: "Revokes the tokens at the authorization server, if it supports that, and deletes them. The server\n" +
			"may still accept an access token until it expires. --principal deletes the own sign-in of a client of\n" +
			"the gateway, where caller_credentials.sign_in is set; its next call shows a new address. A running\n" +
			"tenon serve needs no restart.",
		Example: "  tenon servers logout portal\n  tenon servers logout portal --principal anna",
		Args:    args(1, 1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, s, err := a.account(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer closing(h, &err)
			var had bool
			var untold error
			if cmd.Flags().Changed("principal") {
				had, untold, err = host.SignOut(cmd.Context(), h, tenon.Principal(who), args[0])
			} else {
				had, untold, err = s.Logout(cmd.Context())
			}
			if err != nil {
				return err
			}
			if untold != nil {
				a.note("the tokens were not revoked: %s", untold)
			}
			if a.isJSON() {
				out := map[string]any{"server": args[0], "signed_in": had, "revoked": had && untold == nil}
				if untold != nil {
					out["reason"] = untold.Error()
				}
				if who != "" {
					out["principal"] = who
				}
				return a.printJSON(out)
			}
			text, whose := "signed out of "+args[0], ""
			if who != "" {
				whose = " of '" + who + "'"
				text = "signed '" + who + "' out of " + args[0]
			}
			if !had {
				text = "there was no sign-in" + whose + " to " + args[0]
			}
			return a.write([]byte(safeLine(text) + "\n"))
		},
	}
	cmd.Flags().StringVar(&who, "principal", "", "delete the own sign-in of the principal `NAME`, a client of the "+
		"gateway")
	return cmd
}

// account opens a host for one server.
func (a *app) account(ctx context.Context, name string) (*host.Host, *servers.Server, error) {
	h, err := a.open(ctx, opening{connect: true, live: true})
	if err != nil {
		return nil, nil, err
	}
	s := h.Service().Connections()[name]
	if s == nil {
		err = tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", name, didYouMean(name, serverNames(h)))
		closing(h, &err)
		return nil, nil, err
	}
	return h, s, nil
}

// visit asks a person to open an address. It always prints the address to stderr, because the browser may be on another
// machine.
func (a *app) visit(name, address string, browser bool) {
	fmt.Fprintf(a.err, "Sign in to %s at:\n\n  %s\n\n", safeLine(name), safeLine(address))
	if !browser {
		return
	}
	if err := browse(address); err != nil {
		fmt.Fprintf(a.err, "The browser was not opened (%s); open the address yourself.\n", safeLine(err.Error()))
	}
}

// browse opens an http or https address in the person's browser. It uses no shell, and passes the address as one
// argument that cannot be an option.
func browse(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("it is no http or https address")
	}
	program, args := "xdg-open", []string{u.String()}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", u.String()}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("there is no %s", program)
	}
	cmd := exec.Command(path, args...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	_ = cmd.Process.Release() // the browser outlives tenon, and only the person sees whether it shows the page
	return nil
}
