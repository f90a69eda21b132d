package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// withoutAdmin lists the verbs that do not read the administrator's file. They read no configuration, and a person
// needs them to find an error in that file.
var withoutAdmin = []string{"help", "version", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}

// checkAdmin reads the administrator's file before the verb runs, so that its rules apply to every verb. It refuses
// --yes if the file forbids it.
func (a *app) checkAdmin(cmd *cobra.Command) error {
	if !cmd.HasParent() {
		return nil // it shows its help
	}
	for c := cmd; c != nil; c = c.Parent() {
		if c.HasParent() && !c.Parent().HasParent() && slices.Contains(withoutAdmin, c.Name()) {
			return nil
		}
	}
	cfg, err := config.CheckAdmin(a.configOptions())
	if err != nil {
		return err
	}
	if yes := cmd.Flags().Lookup("yes"); yes != nil && yes.Changed && yes.Value.String() == "true" &&
		cfg.Forbids("yes") {
		return tenon.Errorf(tenon.CodeDenied, "--yes cannot be used: %s: trust.forbid holds yes; leave it out and "+
			"decide each question", cfg.ForbiddenBy("yes"))
	}
	return nil
}
