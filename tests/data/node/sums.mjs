export function work(rounds) {
  let total = 0;
  for (let round = 0; round < rounds; round++) total = (total ^ round) + 1 | 0;
  return total;
}

export function variable(name, value) {
  return Number(process.env[name] ?? value);
}
