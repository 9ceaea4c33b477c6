// The control plane that Moorline's tests start: etcd, kube-apiserver and kube-controller-manager in one
// program, which is the one of them by whose name it is called. One program, because the three share most of
// their code: one build and one file instead of three of each.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// exitUnknownName is EX_USAGE of sysexits.h: no server ends with it, so a wrong link cannot be taken for a
// server that failed.
const exitUnknownName = 64

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		serve(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		serve(controllermanager.NewControllerManagerCommand())
	default:
		fmt.Fprintf(os.Stderr, "this program is etcd, kube-apiserver or kube-controller-manager by the name it is "+
			"called with, and none of them is called %q: call it through one of those three links\n", name)
		os.Exit(exitUnknownName)
	}
}

func serve(command *cobra.Command) {
	os.Exit(cli.Run(command))
}
