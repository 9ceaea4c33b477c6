.PHONY: control-plane

# The real etcd, kube-apiserver and kube-controller-manager that tests/api_server.rs starts.
control-plane:
	tests/control-plane/build.sh
