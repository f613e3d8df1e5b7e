// The program in pods of the kubelet test, and of their sandboxes: prints its devices, and runs until a
// signal. It is process 1 of its container, which receives only signals that it handles: with STUBBORN it
// handles none, and runs until it is killed. With an argument it ends at once, in place of the driver's
// nvidia-smi.
//
//   device /dev/nvidia0 4:20 opened        each device node named nvidia*, or below nvidia-caps
//   probe 4:21 1                           a device of PROBE="4:21 4:22", under a node made here; error number
//   library /usr/lib64/libcuda.so.1 TEXT   a file of the driver, with its first line
//   file LINE                              the first line of the file that METADATA names
//   share 0=4096M 0                        the memory limit of MPS; error number of its folder of pipes
//   daemon 123                             the process id that the MPS daemon has left there
//   NVIDIA_VISIBLE_DEVICES=void
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

// 0, or the number of the error. Opens no terminal as its own.
static int open_device(const char* path) {
  const int file = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return errno;
  close(file);
  return 0;
}

static void print_devices(const char* folder) {
  DIR* all = opendir(folder);
  const struct dirent* entry;
  while (all != NULL && (entry = readdir(all)) != NULL) {
    char path[512];
    struct stat node;
    if (strncmp(entry->d_name, "nvidia", 6) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (stat(path, &node) != 0) continue;
    if (S_ISDIR(node.st_mode)) print_devices(path);
    if (!S_ISCHR(node.st_mode)) continue;
    const int error = open_device(path);
    printf("device %s %u:%u ", path, major(node.st_rdev), minor(node.st_rdev));
    printf(error == 0 ? "opened\n" : "error %d\n", error);
  }
  if (all != NULL) closedir(all);
}

static void probe(const char* numbers) {
  unsigned of_driver, of_device;
  int length;
  while (sscanf(numbers, "%u:%u%n", &of_driver, &of_device, &length) == 2) {
    const char* path = "/probe";
    numbers += length;
    unlink(path);
    const int made = mknod(path, S_IFCHR | 0600, makedev(of_driver, of_device));
    printf("probe %u:%u %d\n", of_driver, of_device, made == 0 ? open_device(path) : errno);
    unlink(path);
  }
}

static void print_library(const char* path) {
  char line[64] = "";
  FILE* file = fopen(path, "r");
  if (file == NULL) return;
  if (fgets(line, sizeof line, file) == NULL) line[0] = 0;
  line[strcspn(line, "\n")] = 0;
  printf("library %s %s\n", path, line);
  fclose(file);
}

static void print_file(const char* path) {
  char line[4096] = "";
  FILE* file = fopen(path, "r");
  if (file == NULL) return;
  if (fgets(line, sizeof line, file) != NULL) printf("file %s", line);
  fclose(file);
}

// A client makes a socket of its own there, and reaches the daemon by another.
static void print_share(void) {
  const char* limit = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  const char* pipes = getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (limit == NULL) return;
  const int error = pipes == NULL ? ENOENT : access(pipes, W_OK) == 0 ? 0 : errno;
  printf("share %s %d\n", limit, error);
  char path[512], line[32] = "";
  snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control.pid", pipes == NULL ? "" : pipes);
  FILE* file = fopen(path, "r");
  if (file == NULL) return;
  if (fgets(line, sizeof line, file) != NULL) printf("daemon %s", line);
  fclose(file);
}

int main(int argc, char** argv) {
  (void)argv;
  sigset_t asked;
  int signal;
  const char* devices = getenv("NVIDIA_VISIBLE_DEVICES");
  const char* numbers = getenv("PROBE");
  print_devices("/dev");
  if (numbers != NULL) probe(numbers);
  print_library("/usr/lib/x86_64-linux-gnu/libcuda.so.1");
  print_library("/usr/lib64/libcuda.so.1");
  if (getenv("METADATA") != NULL) print_file(getenv("METADATA"));
  print_share();
  printf("NVIDIA_VISIBLE_DEVICES=%s\n", devices ? devices : "");
  fflush(stdout);
  if (argc > 1) return 0;
  while (getenv("STUBBORN") != NULL) pause();
  sigemptyset(&asked);
  sigaddset(&asked, SIGTERM);
  sigaddset(&asked, SIGINT);
  sigprocmask(SIG_BLOCK, &asked, NULL);
  sigwait(&asked, &signal);
  return 0;
}
