// npm run double: serves the simulated cluster on a port. PORT, SIZE (1: 320 GPUs), SPEED, PREFIX.
import { Double } from "./server";

const double = new Double({
  port: Number(process.env.PORT ?? 8099),
  size: Number(process.env.SIZE ?? 1),
  speed: Number(process.env.SPEED ?? 5000),
  prefix: process.env.PREFIX ?? "/",
});
const gpus = double.cluster.nodes.length * 8;
console.log(`${await double.start()} serves ${gpus} GPUs; one second is ${process.env.SPEED ?? 5000} ms of theirs`);
