// What runs in a pod of the kubelet test, and as its sandbox: tells what it was handed, and waits to
// be asked to end. As process 1 of its container it hears only signals that it has asked for.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  sigset_t asked;
  int signal;
  const char* devices = getenv("NVIDIA_VISIBLE_DEVICES");
  printf("NVIDIA_VISIBLE_DEVICES=%s\n", devices ? devices : "");
  fflush(stdout);
  sigemptyset(&asked);
  sigaddset(&asked, SIGTERM);
  sigaddset(&asked, SIGINT);
  sigprocmask(SIG_BLOCK, &asked, NULL);
  sigwait(&asked, &signal);
  return 0;
}
