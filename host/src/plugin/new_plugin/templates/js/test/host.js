// Lets Node.js find what the host offers to plugins. For a test the functions of the platform are near enough.
import { register } from 'node:module';

const MODULES = {
  'lm-bench:collector/math@1.0.0': 'export const { exp, exp2, log, log1p, log2, log10, pow, cbrt, sin, cos, tanh } = Math;',
  'lm-bench:collector/host@1.0.0': 'export const log = () => {}; export const symbol = () => null;',
};

const hooks = `
  const modules = ${JSON.stringify(MODULES)};
  export function resolve(name, context, next) {
    return name in modules
      ? { url: 'data:text/javascript,' + encodeURIComponent(modules[name]), shortCircuit: true }
      : next(name, context);
  }`;

register('data:text/javascript,' + encodeURIComponent(hooks));
