// The program in pods of the kubelet test, and of their sandboxes: prints its devices, and runs until a
// signal. As process 1 of its container it receives only signals that it handles.
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
